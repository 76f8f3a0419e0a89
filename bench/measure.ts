/** Medians, and alternating measurements: the speed of a machine drifts, so contenders take turns. */
import { setTimeout } from 'node:timers/promises'

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN
}

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

export interface AlternateOptions {
  readonly rounds: number
  readonly contenders: Readonly<Record<string, () => Promise<unknown>>>
  /** Before each measurement, so that work of the previous contender after its answer does not count for the next. */
  readonly pauseMs?: number
}

/** Runs each contender once per round, in rotating order; returns the times of each. */
export async function alternate({
  rounds,
  contenders,
  pauseMs = 0,
}: AlternateOptions): Promise<Record<string, number[]>> {
  const names = Object.keys(contenders)
  const times: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length] as string
      if (pauseMs > 0) await setTimeout(pauseMs)
      times[name]?.push(await timeMs(contenders[name] as () => Promise<unknown>))
    }
  }
  return times
}
