/**
 * Registers a bridge and sends its heartbeats, from which the platform derives its presence. A change, such as a failed
 * turn and its reason, is reported within a second. A heartbeat that fails is only logged: the next one follows.
 */
import { LIMITS_MAX } from '../../api/registry.ts'
import { type PlatformConnection, retryUntilAnswered } from '../../client/platform-connection.ts'
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Outcome } from '../../inbox/worker.ts'
import type { Log } from '../../log.ts'
import { type LoginCheck, type LoginState, nextLoginState, shownByOutcome } from '../../workspaces/logins.ts'
import { NEEDS_LOGIN_STATE } from '../../workspaces/presence.ts'

const CALL_TIMEOUT_MS = 10_000
const HEARTBEAT_MS = 30_000
/** Changes within this time share one heartbeat, so that a busy bridge stays below the rate limit of its token. */
const REPORT_DELAY_MS = 1_000
const PROBLEM_CHARACTERS_MAX = 400

export interface HeartbeatOptions {
  readonly connection: PlatformConnection
  readonly workspaceId: string
  readonly clock: Clock
  readonly log: Log
  /** What variables and files say about the agent's log-in; undefined for a backend without one. */
  readonly checkLogin: () => LoginCheck | undefined
}

export interface Heartbeat {
  /** Retries until the platform answers; throws what it refuses for good: a wrong token, an unknown workspace. */
  register(signal: AbortSignal): Promise<void>
  begun(): void
  ended(outcome: Outcome): void
  /** Why the handler cannot run a message; undefined when it can again. */
  handlerChanged(problem: string | undefined): void
  lost(): void
  /** What does not work with the program of the agent. The next report has it. */
  limited(limits: readonly string[]): void
  stop(): void
  /** The last heartbeat: the workspace is offline at once and not after 90 s of silence. Call it after `stop`. */
  signOff(): Promise<void>
}

export function createHeartbeat({ connection, workspaceId, clock, log, checkLogin }: HeartbeatOptions): Heartbeat {
  const state = createReportedState({ clock, checkLogin })
  const limits = createReportedLimits()
  let cancel: (() => void) | undefined
  let isReportDue = false
  let stopped = false
  let isRegistered = false
  /** The heartbeat in flight. */
  let sending: Promise<unknown> = Promise.resolve()
  const report = () => ({ workspace_id: workspaceId, ...state.read(), ...limits.field() })
  const arm = (delayMs: number) => {
    cancel?.()
    if (!stopped) cancel = clock.after(delayMs, beat)
  }
  const beat = () => {
    isReportDue = false
    sending = connection
      .post('/registry/heartbeat', { body: report(), timeoutMs: CALL_TIMEOUT_MS, maxWaitMs: 0 })
      .catch((error: unknown) => log.info({ err: toMoleculeError(error) }, 'a heartbeat failed'))
    arm(HEARTBEAT_MS)
  }
  const reportSoon = () => {
    if (isReportDue) return
    isReportDue = true
    arm(REPORT_DELAY_MS)
  }
  return {
    async register(signal) {
      const call = { body: report(), timeoutMs: CALL_TIMEOUT_MS, strict: true }
      await retryUntilAnswered(() => connection.post('/registry/register', call, signal), signal)
      isRegistered = true
      arm(HEARTBEAT_MS)
    },
    begun() {
      state.begun()
      reportSoon()
    },
    ended(outcome) {
      state.ended(outcome)
      reportSoon()
    },
    handlerChanged(broken) {
      state.handlerChanged(broken)
      reportSoon()
    },
    lost() {
      state.lost()
      reportSoon()
    },
    limited: limits.set,
    stop() {
      stopped = true
      cancel?.()
    },
    async signOff() {
      if (!isRegistered) return
      // A heartbeat that arrives after the sign-off would set the workspace online again.
      await sending
      const call = { body: { ...report(), runtime_state: 'stopped' }, timeoutMs: CALL_TIMEOUT_MS, maxWaitMs: 0 }
      await connection.post('/registry/heartbeat', call)
    },
  }
}

function createReportedLimits() {
  /** Undefined until there is one: a platform of an earlier version refuses a report that has them. */
  let limits: readonly string[] | undefined
  return {
    set(found: readonly string[]) {
      if (limits === undefined && found.length === 0) return
      limits = found.slice(0, LIMITS_MAX).map((text) => text.slice(0, PROBLEM_CHARACTERS_MAX))
    },
    field: () => (limits === undefined ? {} : { limits }),
  }
}

/** What the heartbeats report, as it changes. */
function createReportedState({ clock, checkLogin }: Pick<HeartbeatOptions, 'clock' | 'checkLogin'>) {
  const startMs = clock.monotonicMs()
  let active = 0
  let problem = ''
  let brokenHandler: string | undefined
  let login: LoginState | undefined
  const lookAtLogin = (shown?: LoginState['learned']) => {
    const check = checkLogin()
    login = check && nextLoginState(login, check, shown)
  }
  return {
    read() {
      lookAtLogin()
      return {
        active_tasks: active,
        runtime_state: login?.problem === undefined ? '' : NEEDS_LOGIN_STATE,
        problem: login?.problem ?? brokenHandler ?? problem,
        uptime_seconds: Math.floor((clock.monotonicMs() - startMs) / 1000),
      }
    },
    begun() {
      active += 1
    },
    ended(outcome: Outcome) {
      active = Math.max(0, active - 1)
      if (outcome.type === 'done') problem = ''
      lookAtLogin(shownByOutcome(outcome))
      if (outcome.type === 'retry' || outcome.type === 'dead') problem = problemText(outcome)
    },
    handlerChanged(broken: string | undefined) {
      brokenHandler = broken?.slice(0, PROBLEM_CHARACTERS_MAX)
    },
    lost() {
      active = Math.max(0, active - 1)
    },
  }
}

/** Every reader of the workspace may see this, so it takes the public sentence where there is one. */
function problemText({ failure }: Outcome & { type: 'retry' | 'dead' }): string {
  return `its last turn failed: ${failure.sentence ?? failure.message}`.slice(0, PROBLEM_CHARACTERS_MAX)
}
