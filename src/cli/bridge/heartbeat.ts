/**
 * A bridge's signs of life: it registers, sends heartbeats, and soon after something changed says so, above all that
 * its turns fail and why. A heartbeat that fails is no matter: the next one comes.
 */
import { type PlatformConnection, retryUntilAnswered } from '../../client/platform-connection.ts'
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Outcome } from '../../inbox/inbox.ts'
import type { Log } from '../../log.ts'

const CALL_TIMEOUT_MS = 10_000
const HEARTBEAT_MS = 30_000
/** News are gathered for so long: a busy bridge must not ask more often than its token may. */
const REPORT_DELAY_MS = 1_000
const PROBLEM_CHARACTERS_MAX = 400

export interface HeartbeatOptions {
  readonly connection: PlatformConnection
  readonly workspaceId: string
  readonly clock: Clock
  readonly log: Log
}

export interface Heartbeat {
  /** Waits for the platform, and throws what it refuses for good: a wrong token, no such workspace. */
  register(signal: AbortSignal): Promise<void>
  begun(): void
  ended(outcome: Outcome): void
  lost(): void
  stop(): void
}

export function createHeartbeat({ connection, workspaceId, clock, log }: HeartbeatOptions): Heartbeat {
  const startMs = clock.monotonicMs()
  let active = 0
  let problem = ''
  let cancel: (() => void) | undefined
  let soon = false
  let stopped = false
  const report = () => {
    const uptime = Math.floor((clock.monotonicMs() - startMs) / 1000)
    return { workspace_id: workspaceId, active_tasks: active, problem, uptime_seconds: uptime }
  }
  const arm = (delayMs: number) => {
    cancel?.()
    if (!stopped) cancel = clock.after(delayMs, beat)
  }
  const beat = () => {
    soon = false
    connection
      .post('/registry/heartbeat', { body: report(), timeoutMs: CALL_TIMEOUT_MS, maxWaitMs: 0 })
      .catch((error: unknown) => log.info({ err: toMoleculeError(error) }, 'a heartbeat was not heard'))
    arm(HEARTBEAT_MS)
  }
  const reportSoon = () => {
    if (soon) return
    soon = true
    arm(REPORT_DELAY_MS)
  }
  return {
    async register(signal) {
      const call = { body: report(), timeoutMs: CALL_TIMEOUT_MS, strict: true }
      await retryUntilAnswered(() => connection.post('/registry/register', call, signal), signal)
      arm(HEARTBEAT_MS)
    },
    begun() {
      active += 1
      reportSoon()
    },
    ended(outcome) {
      active = Math.max(0, active - 1)
      if (outcome.type === 'done') problem = ''
      if (outcome.type === 'retry' || outcome.type === 'dead') problem = problemText(outcome)
      reportSoon()
    },
    lost() {
      active = Math.max(0, active - 1)
      reportSoon()
    },
    stop() {
      stopped = true
      cancel?.()
    },
  }
}

/** What everybody may read: the clean sentence, where there is one. */
function problemText({ failure }: Outcome & { type: 'retry' | 'dead' }): string {
  return `its last turn failed: ${failure.sentence ?? failure.message}`.slice(0, PROBLEM_CHARACTERS_MAX)
}
