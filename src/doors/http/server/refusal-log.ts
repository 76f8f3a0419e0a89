/**
 * Limits how many lines refused requests write to the log. Prevents an attack: a stranger without a token sends wrong
 * requests until the log has rotated and the traces of something else are gone. The first refusals of a minute are
 * logged one by one, the rest are counted and logged as one line per code.
 */
import type { Clock } from '../../../clock.ts'
import type { ErrorCode } from '../../../errors.ts'
import type { Log } from '../../../log.ts'

export const REFUSED = 'request refused'
export const FAILED = 'request failed'

const WINDOW_MS = 60_000
/** Lines a minute and code that a stranger without a token can cause. */
export const STRANGER_LINES_MAX = 20
const STRANGER_CODES: ReadonlySet<unknown> = new Set<ErrorCode>([
  ...(['unauthenticated', 'not_found', 'forbidden', 'too_many_requests'] as const),
])
/** Lines a minute and code of other refusals and failures. */
const LINES_MAX = 120

/** The same log, with a limit on the lines `REFUSED` and `FAILED`. Other lines pass. */
export function limitRefusals(log: Log, clock: Clock): Log {
  const seen = new Map<unknown, number>()
  let isOpen = false
  const close = () => {
    isOpen = false
    for (const [code, times] of seen) {
      const left = times - limitOf(code)
      if (left > 0) log.info({ code, count: left }, 'more requests were refused within a minute; not logged one by one')
    }
    seen.clear()
  }
  const admits = (fields: object, message: string): boolean => {
    if (message !== REFUSED && message !== FAILED) return true
    if (!isOpen) clock.after(WINDOW_MS, close)
    isOpen = true
    const code: unknown = 'code' in fields ? fields.code : undefined
    const times = (seen.get(code) ?? 0) + 1
    seen.set(code, times)
    return times <= limitOf(code)
  }
  return {
    debug: log.debug,
    info: (fields, message) => admits(fields, message) && log.info(fields, message),
    warn: log.warn,
    error: (fields, message) => admits(fields, message) && log.error(fields, message),
  }
}

const limitOf = (code: unknown): number => (STRANGER_CODES.has(code) ? STRANGER_LINES_MAX : LINES_MAX)
