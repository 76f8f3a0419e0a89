/**
 * What stands behind a door, in memory: a reception whose tasks do what the text of their message says, workspaces and
 * tokens in maps. It keeps the contracts of the real ones as far as a door can see them, and remembers what it was
 * handed.
 */
import { MoleculeError } from '../../src/errors.ts'
import type { DeadLetters, Letter, LogEntry, Reception, TaskView } from '../../src/inbox/inbox.ts'
import type { MaskingLog } from '../../src/log.ts'
import { createLog } from '../../src/log.ts'
import { isFinal, type Task, type TaskState } from '../../src/protocol/a2a.ts'
import type { Identity, TokenRole, Tokens } from '../../src/workspaces/tokens.ts'
import type { Workspace, Workspaces } from '../../src/workspaces/workspace.ts'

export interface Desk {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  readonly log: MaskingLog
  /** Every line of the log, parsed. */
  readonly logged: Record<string, unknown>[]
  readonly letters: Letter[]
  /** How many calls wait for a task right now. */
  waiting(): number
  /** Ends a task that was told to be slow. */
  finish(taskId: string): void
}

/** A workspace that is always there. */
export const WORKSPACE_ID = 'ws_01M7FPH65GBDK8DY0646KAE617'

/** One secret for each role; the secret is the role's name and a bit. */
export const secretOf = (role: TokenRole): string => `${role}-secret`

const ROLES: readonly TokenRole[] = ['admin', 'member', 'viewer', 'caller', 'workspace', 'conversation']

export function createDesk(): Desk {
  const logged: Record<string, unknown>[] = []
  const log = createLog('debug', { write: (line) => logged.push(JSON.parse(line)) })
  const { reception, letters, waiting, finish } = createFakeReception()
  return {
    reception,
    letters,
    waiting,
    finish,
    deadLetters: NO_DEAD_LETTERS,
    workspaces: createFakeWorkspaces(),
    tokens: createFakeTokens(),
    log,
    logged,
  }
}

/** Nothing has ever failed here. */
const NO_DEAD_LETTERS: DeadLetters = {
  list: async () => [],
  replay: async (_workspaceId, id) => {
    throw new MoleculeError('not_found', `there is no dead letter ${id}`)
  },
  discard: async (_workspaceId, id) => {
    throw new MoleculeError('not_found', `there is no dead letter ${id}`)
  },
}

interface Kept {
  task: Task
  readonly workspaceId: string
  readonly principal: string
  readonly done: PromiseWithResolvers<void>
}

function createFakeReception(): Pick<Desk, 'reception' | 'letters' | 'waiting' | 'finish'> {
  const letters: Letter[] = []
  const tasks = new Map<string, Kept>()
  let waiting = 0
  const find = (taskId: string, view: TaskView = {}): Kept | undefined => {
    const kept = tasks.get(taskId)
    if (kept === undefined || (view.workspaceId ?? kept.workspaceId) !== kept.workspaceId) return undefined
    return (view.principal ?? kept.principal) === kept.principal ? kept : undefined
  }
  const settle = (kept: Kept, state: TaskState) => {
    const artifacts = [{ artifactId: 'reply', parts: kept.task.history?.[0]?.parts ?? [] }]
    kept.task = { ...kept.task, status: { state }, ...(state === 'TASK_STATE_COMPLETED' ? { artifacts } : {}) }
    kept.done.resolve()
  }
  const reception: Reception = {
    async admit(letter) {
      letters.push(letter)
      refuseAsTold(letter)
      const { message } = letter.envelope
      const known = [...tasks.values()].find((one) => one.task.history?.[0]?.messageId === message.messageId)
      if (known) return { taskId: known.task.id, contextId: known.task.contextId, duplicate: true }
      const id = `task-${tasks.size + 1}`
      const contextId = message.contextId ?? `context-${id}`
      const history = [
        { ...message, taskId: id, contextId },
        { ...message, messageId: `${message.messageId}-later` },
      ]
      const task: Task = { id, contextId, status: { state: 'TASK_STATE_WORKING' }, history }
      const done = Promise.withResolvers<void>()
      const kept: Kept = { task, workspaceId: letter.workspaceId, principal: letter.principal, done }
      tasks.set(id, kept)
      const text = message.parts[0]?.text
      if (text === 'ask') settle(kept, 'TASK_STATE_INPUT_REQUIRED')
      else if (text === 'fail') settle(kept, 'TASK_STATE_FAILED')
      else if (text !== 'slow') settle(kept, 'TASK_STATE_COMPLETED')
      return { taskId: id, contextId, duplicate: false }
    },
    async task(taskId, view = {}) {
      const task = find(taskId, view)?.task
      if (task === undefined || view.historyLength === undefined) return task
      return { ...task, history: task.history?.slice(task.history.length - view.historyLength) ?? [] }
    },
    async snapshot(taskId, view = {}) {
      const task = find(taskId, view)?.task
      return task && { task, seq: 0, firstSeq: 0 }
    },
    list: async () => ({ tasks: [], total: 0 }),
    async *follow(): AsyncIterable<LogEntry> {},
    async settled(taskId, maxMs, signal) {
      const kept = find(taskId)
      waiting++
      const ended = Promise.withResolvers<void>()
      const timer = setTimeout(ended.resolve, maxMs)
      if (signal.aborted) ended.resolve()
      signal.addEventListener('abort', () => ended.resolve(), { once: true })
      await Promise.race([kept?.done.promise, ended.promise])
      clearTimeout(timer)
      waiting--
      return kept?.task
    },
    async cancel(taskId, view = {}) {
      const kept = find(taskId, view)
      if (kept === undefined) throw new MoleculeError('not_found', `there is no task ${taskId}`)
      const { state } = kept.task.status
      if (isFinal(state) && state !== 'TASK_STATE_CANCELED') throw new MoleculeError('not_cancelable', 'it has ended')
      settle(kept, 'TASK_STATE_CANCELED')
      return kept.task
    },
  }
  const finish = (taskId: string) => {
    const kept = tasks.get(taskId)
    if (kept) settle(kept, 'TASK_STATE_COMPLETED')
  }
  return { reception, letters, waiting: () => waiting, finish }
}

/** Messages that meet an error: the text is its name. */
function refuseAsTold({ workspaceId, envelope: { message } }: Letter): void {
  if (workspaceId !== WORKSPACE_ID) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  if (message.taskId === 'unknown') throw new MoleculeError('not_found', 'there is no task unknown')
  switch (message.parts[0]?.text) {
    case 'queue_full':
      throw new MoleculeError('queue_full', 'the queue is full', { retryable: true, details: { retryAfterMs: 1500 } })
    case 'idempotency_conflict':
      throw new MoleculeError('idempotency_conflict', 'used before with other content')
    case 'unsupported_operation':
      throw new MoleculeError('unsupported_operation', 'the task has ended')
    case 'store_unavailable':
      throw new MoleculeError('store_unavailable', 'disk I/O error in /inside/molecule.db', { retryable: true })
    case 'defect':
      throw new TypeError('cannot read "inside" of undefined')
  }
}

function createFakeWorkspaces(): Workspaces {
  const all = new Map<string, Workspace>()
  const add = (workspace: Workspace) => all.set(workspace.id, workspace)
  const base = {
    role: '',
    runtime: 'exec',
    tier: 2,
    maxConcurrentTasks: 1,
    maxAttempts: 4,
    workingDir: '/work',
  } as const
  const made = { runtimeConfig: {}, status: 'online', createdAtMs: 1_700_000_000_000 } as const
  add({ ...base, ...made, id: WORKSPACE_ID, name: 'echo' })
  const withLoad = (workspace: Workspace) => ({ ...workspace, queueDepth: 0, running: 0 })
  return {
    async create(input) {
      if (input.name === 'defect') throw new TypeError('cannot read "inside" of undefined')
      const workspace: Workspace = { ...base, ...made, ...input, id: `ws_${all.size}` }
      add(workspace)
      return workspace
    },
    async get(id) {
      const workspace = all.get(id)
      return workspace && withLoad(workspace)
    },
    list: async () => [...all.values()].map(withLoad),
  }
}

function createFakeTokens(): Tokens {
  const known = new Map<string, Identity>(ROLES.map((role) => [secretOf(role), identityOf(role)]))
  const codes = new Set<string>()
  let made = 0
  return {
    verify: async (secret) => known.get(secret),
    issueLoginCode() {
      const code = `code-${++made}`
      codes.add(code)
      return code
    },
    async exchangeLoginCode(code) {
      if (!codes.delete(code)) return undefined
      const secret = `session-${++made}`
      known.set(secret, identityOf('admin'))
      return { secret, maxAgeSeconds: 3600 }
    },
    async revokeSession(secret) {
      known.delete(secret)
    },
  }
}

function identityOf(role: TokenRole): Identity {
  const sender = { kind: 'person', id: role, name: role, door: 'http' } as const
  return { tokenId: role, name: role, role, principal: role === 'caller' ? 'token:caller' : 'people', sender }
}
