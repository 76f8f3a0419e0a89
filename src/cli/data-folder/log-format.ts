/** Log lines for people: level and message first, then the fields. */
import { withoutControls } from '../../printable.ts'

/** The platform's log in the data folder. */
export const LOG_FILE = 'molecule.log'

const LEVEL_NAMES: Readonly<Record<number, string>> = { 20: 'debug', 30: 'info', 40: 'warning', 50: 'error' }

/** With its time first. A line that is not JSON, which a crash may leave, is shown unchanged. */
export function formatLogLineWithTime(line: string): string {
  try {
    const { time } = JSON.parse(line) as { time?: unknown }
    const at = typeof time === 'number' || typeof time === 'string' ? new Date(time) : undefined
    const text = formatLogLine(line)
    return at === undefined || Number.isNaN(at.getTime()) ? text : `${at.toISOString()} ${text}`
  } catch {
    return `${withoutControls(line)}\n`
  }
}

/** Without time and stack, which stay in the file, and without control characters: a field may quote a program's stderr. */
export function formatLogLine(line: string): string {
  const { level, time: _time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const levelName = LEVEL_NAMES[Number(level)] ?? 'info'
  const cause = (err as { message?: string } | undefined)?.message
  const about = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const words = [`${levelName}: ${String(msg)}`, ...(cause === undefined ? [] : [`(${cause})`]), ...about]
  return `${withoutControls(words.join(' '))}\n`
}
