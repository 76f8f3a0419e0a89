/**
 * What is counted: a few named counters with labels, in memory, read by `/metrics`. One object for a process, passed to
 * whoever counts. Invariant: the number of series is bounded; a label that could take any value would otherwise be a
 * leak, so what comes after the limit is counted under the label `other`.
 */

export type Labels = Readonly<Record<string, string>>

export interface Series {
  readonly labels: Labels
  readonly value: number
}

export interface Metrics {
  count(name: string, labels?: Labels, by?: number): void
  /** By name, in the order in which they were first counted. */
  read(): ReadonlyMap<string, readonly Series[]>
}

/** Of one counter. */
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
