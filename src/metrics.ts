/**
 * Counters with labels, in memory, which `/metrics` prints as Prometheus text. One object serves the process.
 * Invariant: a counter has at most 200 series and one more, `other`, that counts all further label values together.
 * Why not prom-client: it keeps a series for every label value without a limit, so a label from outside leaks memory.
 */

export type Labels = Readonly<Record<string, string>>

export interface Series {
  readonly labels: Labels
  readonly value: number
}

/** Every counter, with the sentence that `/metrics` shows about it. The name of a counter ends in `_total`. */
export const COUNTERS = {
  molecule_turns_total: 'Turns that ended, by outcome.',
  molecule_turn_failures_total: 'Turns that failed, by the code of the failure.',
  molecule_tokens_total: 'Tokens that turns reported, by direction.',
  molecule_http_requests_total: 'Answered HTTP requests, by class of status.',
  molecule_grpc_requests_total: 'Answered gRPC calls, by status.',
  molecule_store_slow_commits_total: 'Commits of the store that took longer than 100 ms.',
  molecule_store_wal_held_total: 'Times that a foreign reader kept the write-ahead log above its limit.',
} as const satisfies Readonly<Record<`molecule_${string}_total`, string>>

export type CounterName = keyof typeof COUNTERS

export interface Metrics {
  count(name: CounterName, labels?: Labels, by?: number): void
  /** By counter name, in the order of their first count. */
  read(): ReadonlyMap<CounterName, readonly Series[]>
}

/** For each counter; a label set beyond it is counted as `other`. */
const SERIES_MAX = 200

export function createMetrics(): Metrics {
  const counters = new Map<CounterName, Map<string, { labels: Labels; value: number }>>()
  const seriesOf = (name: CounterName, labels: Labels) => {
    const all = counters.get(name) ?? new Map<string, { labels: Labels; value: number }>()
    counters.set(name, all)
    const key = JSON.stringify(labels)
    const known = all.get(key)
    if (known !== undefined) return known
    const isFull = all.size >= SERIES_MAX
    const kept = isFull ? Object.fromEntries(Object.keys(labels).map((label) => [label, 'other'])) : labels
    const place = isFull ? JSON.stringify(kept) : key
    const series = all.get(place) ?? { labels: kept, value: 0 }
    all.set(place, series)
    return series
  }
  return {
    count(name, labels = {}, by = 1) {
      seriesOf(name, labels).value += by
    },
    read: () => new Map([...counters].map(([name, all]) => [name, [...all.values()]])),
  }
}

/** What the counters of turns need of an outcome. */
interface CountedOutcome {
  readonly type: string
  readonly failure?: { readonly code: string }
  readonly usage?: { readonly inputTokens?: number | undefined; readonly outputTokens?: number | undefined } | undefined
}

/** Counts a settled turn, of the platform's runtime or of a bridge. */
export function countTurn(metrics: Metrics, { type, failure, usage }: CountedOutcome): void {
  metrics.count('molecule_turns_total', { outcome: type })
  if (failure !== undefined) metrics.count('molecule_turn_failures_total', { code: failure.code })
  if (usage === undefined) return
  metrics.count('molecule_tokens_total', { direction: 'input' }, usage.inputTokens ?? 0)
  metrics.count('molecule_tokens_total', { direction: 'output' }, usage.outputTokens ?? 0)
}
