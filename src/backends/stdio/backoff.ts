/** When a program that keeps dying is started again: at once the first time, then later and later, until it answers. */
import type { Clock } from '../../clock.ts'
import { sleep } from '../../wait.ts'

const FIRST_MS = 250
const LONGEST_MS = 30_000

export interface RestartBackoff {
  /** Resolves when it may be started, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
  died(): void
  answered(): void
}

export function createRestartBackoff(clock: Clock): RestartBackoff {
  let deaths = 0
  let notBeforeMs = 0
  return {
    async wait(signal) {
      const waitMs = notBeforeMs - clock.monotonicMs()
      if (waitMs > 0) await sleep(clock, waitMs, signal)
    },
    died() {
      deaths += 1
      notBeforeMs = deaths === 1 ? 0 : clock.monotonicMs() + Math.min(FIRST_MS * 2 ** (deaths - 2), LONGEST_MS)
    },
    answered() {
      deaths = 0
    },
  }
}
