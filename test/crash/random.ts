/** Random numbers from a seed (mulberry32), so that a failing run can be repeated. */
export interface Random {
  /** From 0 up to `below`, exclusive. */
  number(below: number): number
  whole(below: number): number
  pick<T>(choices: readonly T[]): T
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (below: number) => Math.floor(next() * below)
  return {
    number: (below) => next() * below,
    whole,
    pick: (choices) => choices[whole(choices.length)] as (typeof choices)[number],
  }
}
