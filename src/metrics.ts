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

export interface Metrics {
  count(name: string, labels?: Labels, by?: number): void
  /** By counter name, in the order of their first count. */
  read(): ReadonlyMap<string, readonly Series[]>
}

/** For each counter; a label set beyond it is counted as `other`. */
const SERIES_MAX = 200

export function createMetrics(): Metrics {
  const counters = new Map<string, Map<string, { labels: Labels; value: number }>>()
  const seriesOf = (name: string, labels: Labels) => {
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
