/** Lines of the platform's log as people read them: the sentence first, then what belongs to it. */

import { withoutControls } from '../terminal/output.ts'

export const LOG_FILE = 'molecule.log'

const LEVEL_NAMES: Readonly<Record<number, string>> = { 20: 'debug', 30: 'info', 40: 'warning', 50: 'error' }

/** With its time; a line that is no JSON, as a crash may leave one, is shown as it is. */
export function formatLogLineWithTime(line: string): string {
  try {
    const { time } = JSON.parse(line) as { time?: unknown }
    const at = typeof time === 'number' || typeof time === 'string' ? new Date(time) : undefined
    // A program's stderr may stand in a field of it.
    const text = withoutControls(formatLogLine(line))
    return at === undefined || Number.isNaN(at.getTime()) ? text : `${at.toISOString()} ${text}`
  } catch {
    return `${withoutControls(line)}\n`
  }
}

/** For a terminal: stacks stay in the file. */
export function formatLogLine(line: string): string {
  const { level, time: _time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const word = LEVEL_NAMES[Number(level)] ?? 'info'
  const cause = (err as { message?: string } | undefined)?.message
  const about = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return [`${word}: ${String(msg)}`, ...(cause === undefined ? [] : [`(${cause})`]), ...about].join(' ') + '\n'
}
