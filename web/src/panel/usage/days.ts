/** Days of usage for a chart: every day of the range, also those without turns. Days are UTC, as the platform counts. */

import type { WorkspaceUsageView } from '../../../../src/client/views.ts'
import { DAY_MS } from '../../../../src/duration.ts'
import { MONTHS } from '../../ui/text/times.ts'

export type UsageSumView = WorkspaceUsageView['total']

export interface UsageDay {
  /** `2026-11-12` */
  readonly day: string
  /** `12 Nov` */
  readonly title: string
  readonly isToday: boolean
  /** Undefined on a day without turns. */
  readonly sum: UsageSumView | undefined
}

/** The oldest day first. */
export function daysOf(known: WorkspaceUsageView['days'], count: number, nowMs: number): UsageDay[] {
  const byDay = new Map(known.map((sum) => [sum.day, sum]))
  return Array.from({ length: count }, (_value, index) => {
    const date = new Date(nowMs - (count - 1 - index) * DAY_MS)
    const day = date.toISOString().slice(0, 10)
    const title = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`
    return { day, title, isToday: index === count - 1, sum: byDay.get(day) }
  })
}

/** The end of the axis: the next round amount above the largest one, with two or three even steps to it. */
export function axisOf(largest: number): { readonly end: number; readonly steps: readonly number[] } {
  if (largest <= 0) return { end: 1, steps: [0, 1] }
  const power = 10 ** Math.floor(Math.log10(largest))
  const end = ([1, 2, 3, 4, 5, 6, 8, 10].find((factor) => factor * power >= largest) ?? 10) * power
  return { end, steps: [0, end / 2, end] }
}

/** Input and output together; null where no turn reported any. */
export function knownTokens({ input_tokens: input, output_tokens: output }: UsageSumView): number | null {
  return input === null && output === null ? null : (input ?? 0) + (output ?? 0)
}

/** `6.1 M`, `41.2 k`, `930`; `≥` where some turns reported nothing. */
export function tokensText(sum: UsageSumView): string {
  const tokens = knownTokens(sum)
  if (tokens === null) return sum.turns === 0 ? '0' : 'unknown'
  return `${sum.unknown_turns > 0 ? '≥ ' : ''}${shortCount(tokens)}`
}

export function shortCount(count: number): string {
  if (count >= 999_950) return `${(count / 1e6).toFixed(1)} M`
  if (count >= 10_000) return `${(count / 1000).toFixed(1)} k`
  return count.toLocaleString('en-US')
}
