/** How tests wait for a condition or a promise: with a limit, and with a name for what they wait for. */
import { setTimeout as delay } from 'node:timers/promises'

/** Generous, because tests share the machine with other work. */
const WAIT_MS_MAX = 60_000
const POLL_MS = 20

/**
 * Resolves once the condition holds. Fails after the timeout, naming what it waited for, or else the condition itself; also
 * when the condition itself hangs.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string) = () => String(condition),
  timeoutMs = WAIT_MS_MAX,
): Promise<void> {
  const over = new AbortController()
  const poll = async () => {
    while (!(over.signal.aborted || (await condition()))) await delay(POLL_MS)
  }
  try {
    await within(poll(), what, timeoutMs)
  } finally {
    over.abort()
  }
}

/** The result of the promise. Fails after the timeout and names what it waited for. */
export async function within<T>(
  promise: Promise<T>,
  what: string | (() => string),
  timeoutMs = WAIT_MS_MAX,
): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Error(`did not happen within ${timeoutMs} ms: ${typeof what === 'string' ? what : what()}`))
  }, timeoutMs)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
