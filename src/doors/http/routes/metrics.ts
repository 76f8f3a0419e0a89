/**
 * `GET /metrics`: counters and queue depths in the text format of Prometheus. Labels are escaped: a newline in a value
 * would otherwise begin a line of its own.
 */
import type { LoadReport } from '../../../inbox/load-readers.ts'
import type { Labels, Metrics, Series } from '../../../metrics.ts'
import { route } from './route.ts'

export const metricsRoutes = [
  route({
    method: 'get',
    path: '/metrics',
    access: 'metrics.read',
    summary: 'Counters and load in the format of Prometheus',
    success: [200, 'The metrics'],
    async handle({ context }, { metrics, load }) {
      const text = metricsText(metrics, await load())
      return context.body(text, 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
    },
  }),
]

export function metricsText(metrics: Metrics, report: LoadReport): string {
  const counters = [...metrics.read()].map(([name, series]) => familyText({ name, type: 'counter', series }))
  return [...counters, ...gauges(report).map(familyText)].join('')
}

interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly Series[]
}

function gauges({ waiting, running, workspaces }: LoadReport): MetricFamily[] {
  const gauge = (name: string, series: readonly Series[]): MetricFamily => ({
    name: `molecule_${name}`,
    type: 'gauge',
    series,
  })
  const one = (value: number): Series[] => [{ labels: {}, value }]
  const each = (read: (workspace: LoadReport['workspaces'][number]) => number): Series[] =>
    workspaces.map((workspace) => ({ labels: { workspace: workspace.id }, value: read(workspace) }))
  const memory = process.memoryUsage()
  return [
    gauge('queue_depth_total', one(waiting)),
    gauge('turns_running', one(running)),
    gauge(
      'queue_depth',
      each((workspace) => workspace.waiting),
    ),
    gauge(
      'queue_oldest_seconds',
      each((workspace) => workspace.oldestWaitingMs / 1000),
    ),
    gauge('resident_memory_bytes', one(memory.rss)),
    gauge('heap_used_bytes', one(memory.heapUsed)),
    gauge('uptime_seconds', one(Math.round(process.uptime()))),
  ]
}

function familyText({ name, type, series }: MetricFamily): string {
  if (series.length === 0) return ''
  const lines = series.map(({ labels, value }) => `${name}${labelText(labels)} ${value}\n`)
  return `# TYPE ${name} ${type}\n${lines.join('')}`
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
