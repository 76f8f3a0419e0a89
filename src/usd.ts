/** Amounts of US dollars as text. An unknown cost is named, because it is not 0. */

/** What turns cost together. Turns of unknown cost are counted and add nothing. */
export interface Spending {
  readonly costUsd: number
  readonly unknownTurns: number
}

/** `$0.41`, or `≥ $0.41, 2 turns of unknown cost`. */
export function spendingText({ costUsd, unknownTurns }: Spending): string {
  if (unknownTurns === 0) return usdText(costUsd)
  return `≥ ${usdText(costUsd)}, ${unknownTurns} ${unknownTurns === 1 ? 'turn' : 'turns'} of unknown cost`
}

/** Two decimals, and up to four where they are needed: many turns cost less than a cent. */
export const usdText = (usd: number): string => `$${usd.toFixed(4).replace(/0{1,2}$/, '')}`

/** The next of 1, 2, 5, 10, 20, 50 and so on, in the range of the amount: $3.02 suggests $5, and $0.40 suggests $0.5. */
export function nextUsd(usd: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(usd, 0.01)))
  const factor = [1, 2, 5, 10].find((one) => one * power > usd) ?? 20
  return Number((factor * power).toPrecision(1))
}
