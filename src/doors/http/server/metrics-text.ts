/**
 * Counters and queue depths in the text format of Prometheus, for `GET /metrics`. Labels are escaped: a newline in a value
 * would otherwise begin a line of its own.
 */
import { COUNTERS, type Labels, type Metrics, type Series } from '../../../metrics.ts'
import type { Load } from '../../../views/load.ts'

export function metricsText(metrics: Metrics, report: Load): string {
  const counters = [...metrics.read()].map(([name, series]) =>
    familyText({ name, help: COUNTERS[name], type: 'counter', series }),
  )
  return [...counters, ...gauges(report).map(familyText)].join('')
}

interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly Series[]
}

/** No name ends in `_total`, which is for counters; a name with a unit has a base unit. */
function gauges({ waiting, running, workspaces }: Load): MetricFamily[] {
  const gauge = (name: string, help: string, series: readonly Series[]): MetricFamily => ({
    name: `molecule_${name}`,
    help,
    type: 'gauge',
    series,
  })
  const one = (value: number): Series[] => [{ labels: {}, value }]
  const each = (read: (workspace: Load['workspaces'][number]) => number): Series[] =>
    workspaces.map((workspace) => ({ labels: { workspace: workspace.id }, value: read(workspace) }))
  const depths = each((workspace) => workspace.waiting)
  const oldest = each((workspace) => workspace.oldest_waiting_ms / 1000)
  const memory = process.memoryUsage()
  return [
    gauge('messages_waiting', 'Messages that wait for a turn, in all workspaces.', one(waiting)),
    gauge('turns_running', 'Turns that run now, in all workspaces.', one(running)),
    gauge('queue_depth', 'Messages that wait for a turn, of the busiest workspaces.', depths),
    gauge('queue_oldest_seconds', 'How long the oldest message of a workspace has waited.', oldest),
    gauge('resident_memory_bytes', 'Memory of the process.', one(memory.rss)),
    gauge('heap_used_bytes', 'Used heap of JavaScript.', one(memory.heapUsed)),
    gauge('uptime_seconds', 'How long the process has run.', one(Math.round(process.uptime()))),
  ]
}

function familyText({ name, help, type, series }: MetricFamily): string {
  if (series.length === 0) return ''
  const lines = series.map(({ labels, value }) => `${name}${labelText(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
