/**
 * Whether the agents of hosted workspaces have a log-in. Every ten seconds it looks at variables and files, and a failed
 * or answered turn tells more. A problem is stored with its workspace, and `presence.ts` shows it as `needs_login`.
 * Invariant: what a turn learned counts until the log-in may have changed, so a new log-in heals the status by itself.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import { withHostedQueue } from '../inbox/queue-rows.ts'
import type { Outcome } from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { sleep } from '../wait.ts'
import { backendOptionsOf } from './brief/brief-maker.ts'
import type { Homes } from './homes/homes.ts'
import { parseSettings } from './workspace-rows.ts'

const ROUND_MS = 10_000
/** Workspaces that are looked at before other work gets a turn of the event loop. */
const SLICE_WORKSPACES = 50

/** What variables and files say about the log-in of an agent. */
export interface LoginCheck {
  /** Changes when the log-in may have changed. */
  readonly fingerprint: string
  /** No log-in was found, and the command to run; absent if one was found. */
  readonly problem?: string
  /** The sentence for a log-in that the model provider refused. */
  readonly refused: string
}

/** What is known about a log-in, as stored. `learned` is what a turn showed under this fingerprint. */
export interface LoginState {
  readonly fingerprint: string
  readonly learned?: 'accepted' | 'refused'
  readonly problem?: string
}

/** The new state after a look at variables and files, or after a turn. Undefined: nothing is known to be wrong. */
export function nextLoginState(
  before: LoginState | undefined,
  check: LoginCheck,
  shown?: LoginState['learned'],
): LoginState | undefined {
  const learned = shown ?? (before?.fingerprint === check.fingerprint ? before.learned : undefined)
  const shownProblem = learned === 'refused' ? check.refused : undefined
  const problem = learned === undefined ? check.problem : shownProblem
  // An accepted log-in that was not found is remembered: it is in a place that the check does not know.
  if (problem === undefined && check.problem === undefined) return undefined
  const { fingerprint } = check
  return { fingerprint, learned, problem }
}

/** What a turn shows about the log-in; undefined if nothing. */
export function shownByOutcome(outcome: Outcome): LoginState['learned'] {
  if (outcome.type === 'done') return 'accepted'
  const isFailure = outcome.type === 'retry' || outcome.type === 'dead'
  return isFailure && outcome.failure.code === 'auth_failed' ? 'refused' : undefined
}

export interface LoginsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly homes: Homes
  /** Undefined for a backend without a log-in that can be looked at. */
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => LoginCheck | undefined
}

export interface Logins {
  start(): void
  stop(): Promise<void>
  /** Looks at one workspace now. */
  refresh(workspaceId: string): Promise<void>
  /** A turn of the workspace has ended. Costs nothing unless it changes what is known. */
  turnEnded(workspaceId: string, outcome: Outcome): void
}

export function createLogins(options: LoginsOptions): Logins {
  const { store, clock, log } = options
  const stopped = new AbortController()
  /** Workspaces whose stored state has a problem. */
  const troubled = new Set<string>()
  let running: Promise<unknown> = Promise.resolve()
  /** One after the other: a look must not overwrite what a turn has just shown. */
  let writing: Promise<unknown> = Promise.resolve()
  const update = (row: LoginRow, shown?: LoginState['learned']) => {
    const updated = updateLogin(row, options, shown)
    if (updated?.problem === undefined) troubled.delete(row.id)
    else troubled.add(row.id)
    const text = updated === undefined ? null : JSON.stringify(updated)
    return text === row.login_state ? undefined : store.write(() => storeLogin(row.id, text), row.id)
  }
  const inOrder = (work: () => Promise<unknown>) => {
    const done = writing.then(work)
    writing = done.catch((error) => log.warn({ err: toMoleculeError(error) }, 'a log-in could not be checked'))
    return writing
  }
  const refresh = async (id: string, shown?: LoginState['learned']) => {
    await inOrder(async () => {
      for (const row of await store.read(() => listLoginRows(id))) await update(row, shown)
    })
  }
  const round = async () => {
    const rows = await store.read(() => listLoginRows())
    for (const [index, row] of rows.entries()) {
      if (stopped.signal.aborted) return
      if (index % SLICE_WORKSPACES === SLICE_WORKSPACES - 1) await nextTurn()
      await update(row)
    }
  }
  return {
    start() {
      const loop = async () => {
        while (!stopped.signal.aborted) {
          await inOrder(round)
          await sleep(clock, ROUND_MS, stopped.signal)
        }
      }
      running = loop()
    },
    async stop() {
      stopped.abort()
      await Promise.all([running, writing])
    },
    refresh,
    turnEnded(id, outcome) {
      const shown = shownByOutcome(outcome)
      if (stopped.signal.aborted || shown === undefined) return
      if (troubled.has(id) === (shown === 'accepted')) void refresh(id, shown)
    },
  }
}

interface LoginRow {
  id: string
  role: string
  runtime: string
  settings: string
  login_state: string | null
}

function* listLoginRows(id = ''): Transaction<LoginRow[]> {
  return yield* sql<LoginRow>(
    `select w.id, w.role, w.runtime, w.settings, w.login_state from workspaces w
     where ${withHostedQueue('w.id')} and (w.id = $1 or $1 = '')`,
    [id],
  )
}

function* storeLogin(id: string, state: string | null): Transaction<void> {
  yield* sql('update workspaces set login_state = $2 where id = $1', [id, state])
}

function updateLogin(row: LoginRow, { homes, check }: LoginsOptions, shown?: LoginState['learned']) {
  const checked = check(row.runtime, backendOptionsOf(parseSettings(row), homes.path(row.id)))
  if (checked === undefined) return undefined
  const before = row.login_state === null ? undefined : (JSON.parse(row.login_state) as LoginState)
  return nextLoginState(before, checked, shown)
}
