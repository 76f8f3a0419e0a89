/** Converts `runtime_config` to backend options: every JSON or YAML value becomes a string. */
import type { Json } from '../../protocol/a2a.ts'

/** Keys where a number without a unit means seconds, and 0 means no limit. */
const DURATION_KEYS: ReadonlySet<string> = new Set(['timeout', 'max_time'])

export function backendOptions(config: Readonly<Record<string, Json>>): Record<string, string> {
  const options: Record<string, string> = {}
  for (const [key, value] of Object.entries(config)) options[key] = toOption(key, value)
  return options
}

function toOption(key: string, value: Json): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' && DURATION_KEYS.has(key)) return value === 0 ? 'none' : `${value}s`
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
