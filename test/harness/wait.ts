/** The one way in which tests wait for a condition. */
import { setTimeout as delay } from 'node:timers/promises'

/** Generous, because tests share the machine with other work. */
const WAIT_MS_MAX = 60_000
const POLL_MS = 20

/** Resolves once the condition holds. Fails after the timeout, naming what it waited for, or else the condition itself. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string) = () => String(condition),
  timeoutMs = WAIT_MS_MAX,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > deadlineMs) {
      throw new Error(`did not happen within ${timeoutMs} ms: ${typeof what === 'string' ? what : what()}`)
    }
    await delay(POLL_MS)
  }
}
