/**
 * The dependencies of a door, in memory: a reception whose tasks do what the text of their message says, workspaces and
 * tokens in maps. They keep the contracts of the real ones as far as a door can see, and remember the letters.
 */
import { systemClock } from '../../../src/clock.ts'
import type { PushContext } from '../../../src/doors/http/a2a/push-methods.ts'
import type { WorkspaceRoutesContext } from '../../../src/doors/http/routes/route.ts'
import { createMcp } from '../../../src/doors/mcp/mcp.ts'
import type { AnswerMcp } from '../../../src/doors/mcp-calls.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { StoredPush } from '../../../src/inbox/delivery.ts'
import type { DeadLetters, PendingAsks } from '../../../src/inbox/owners.ts'
import { coversPrincipal } from '../../../src/inbox/read/principals.ts'
import type { Letter, LogEntry, Reception, TaskView } from '../../../src/inbox/reception.ts'
import type { MaskingLog } from '../../../src/log.ts'
import { createLog } from '../../../src/log.ts'
import { isFinal, isInterrupted, type StreamResponse, type Task, type TaskState } from '../../../src/protocol/a2a.ts'
import { onAbort } from '../../../src/wait.ts'
import type { TokenRole, Tokens } from '../../../src/workspaces/tokens.ts'
import type { Workspace, Workspaces } from '../../../src/workspaces/workspace.ts'
import { emptyStore, noChannels, noDeadLetters, noSchedules } from './absent-parts.ts'
import { createFakeTokens } from './fake-tokens.ts'

export interface FakePlatform extends WorkspaceRoutesContext {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly mcp: AnswerMcp
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  readonly log: MaskingLog
  /** Every line of the log, parsed. */
  readonly logged: Record<string, unknown>[]
  readonly letters: Letter[]
  /** The results that were marked as read: task and reader. */
  readonly readResults: readonly (readonly [taskId: string, reader: string])[]
  /** The number of calls that wait for a task now. */
  waiting(): number
  /** The number of streams that follow a task now. */
  following(): number
  /** Adds a row to the log of a task whose message was "slow". */
  addLogRow(taskId: string, wire: readonly StreamResponse[]): void
  /** Ends a task whose message was "slow". */
  finish(taskId: string): void
}

/** A workspace that always exists; the tokens of the roles workspace, conversation and caller are for it. */
export const WORKSPACE_ID = 'ws_01M7FPH65GBDK8DY0646KAE617'

/** The ready-made secret of each role. */
export const secretOf = (role: TokenRole): string => `${role}-secret`

export function createFakePlatform(): FakePlatform {
  const logged: Record<string, unknown>[] = []
  const log = createLog('debug', { write: (line) => logged.push(JSON.parse(line)) })
  const workspaces = createFakeWorkspaces()
  const exists = async (id: string) => (await workspaces.get(id)) !== undefined
  const fakeReception = createFakeReception(exists)
  const parts = { ...fakeReception, ...NO_WORKSPACE_CONTEXT, workspaces }
  return {
    ...parts,
    deadLetters: noDeadLetters,
    mcp: createMcp({
      ...parts,
      outreach: { send: async () => [] },
      workingFiles: { read: rejectNotFound, attach: async () => undefined },
      clock: systemClock,
      version: '1.2.3',
    }),
    tokens: createFakeTokens({ workspaceId: WORKSPACE_ID, secretOf }),
    log,
    logged,
  }
}

const nothingWaits = async (id: string): Promise<never> => {
  throw new MoleculeError('not_found', `nothing with the id ${id} waits for an answer`)
}

const NOTHING_PENDING: PendingAsks = {
  answer: nothingWaits,
  allowAlways: nothingWaits,
}

const rejectUnknownBudget = async (id: string): Promise<never> => {
  throw new MoleculeError('not_found', `no budget with the id ${id} was asked about`)
}

const rejectNotFound = async (id: string): Promise<never> => {
  throw new MoleculeError('not_found', `there is no workspace ${id}`)
}

/** The end-to-end tests use real ones; here there is nothing to find. */
const NO_WORKSPACE_CONTEXT: WorkspaceRoutesContext = {
  pending: NOTHING_PENDING,
  rules: { revoke: rejectNotFound },
  budgets: {
    raise: rejectUnknownBudget,
    stop: rejectUnknownBudget,
  },
  deliveries: { resolve: rejectNotFound },
  damagedReplies: { dismiss: rejectNotFound },
  lifecycle: {
    change: rejectNotFound,
    checkChange: rejectNotFound,
    remove: rejectNotFound,
    restart: rejectNotFound,
    pause: rejectNotFound,
    stop: rejectNotFound,
    resume: rejectNotFound,
  },
  files: {
    list: rejectNotFound,
    read: rejectNotFound,
    write: rejectNotFound,
    check: rejectNotFound,
    remove: rejectNotFound,
  },
  store: emptyStore,
  registry: {
    register: rejectNotFound,
    setStatusText: rejectNotFound,
    heartbeat: rejectNotFound,
    peers: rejectNotFound,
  },
  clockDoor: { wake: () => undefined, run: ({ id }) => rejectNotFound(id) },
  schedules: noSchedules,
  chat: noChannels,
  memories: {
    resolveNamespace: rejectNotFound,
    namespacesOf: rejectNotFound,
    namesOfWriters: async () => new Map(),
    commit: ({ namespace }) => rejectNotFound(namespace),
    search: ({ namespace }) => rejectNotFound(namespace),
    newest: rejectNotFound,
    forget: rejectNotFound,
    prune: async () => 0,
    forgetAll: async () => 0,
  },
  agents: { list: async () => [] },
  knownNames: { runtimes: ['mock'], channelKinds: ['telegram'] },
  activity: { addNote: rejectNotFound },
  logs: {
    resolveCursor: rejectNotFound,
    async *follow() {},
    page: async () => undefined,
    heads: async () => new Map(),
    onChange: () => () => undefined,
  },
  bridgeContext: {
    brief: () => rejectNotFound(''),
    bridges: {
      lease: async () => [],
      begin: async () => 'stale',
      extend: async (keys) => keys.map(() => 'stale' as const),
      append: async () => 'stale',
      settle: async () => 'stale',
      suspend: async () => 'stale',
      resume: async () => 'stale',
      isConnected: () => false,
      ask: async () => 'stale',
    },
  },
}

interface FakeTask {
  task: Task
  readonly workspaceId: string
  readonly principal: string
  readonly done: PromiseWithResolvers<void>
  readonly log: LogEntry[]
  readonly readers: Set<() => void>
}

type Exists = (workspaceId: string) => Promise<boolean>
type FakeReception = Pick<
  FakePlatform,
  'reception' | 'letters' | 'readResults' | 'waiting' | 'following' | 'addLogRow' | 'finish'
>

function createFakeReception(exists: Exists): FakeReception {
  const letters: Letter[] = []
  const readResults: [string, string][] = []
  const tasks = new Map<string, FakeTask>()
  let waiting = 0
  let following = 0
  let seq = 0
  const find = (taskId: string, view: TaskView = {}): FakeTask | undefined => {
    const kept = tasks.get(taskId)
    if (kept === undefined || (view.workspaceId ?? kept.workspaceId) !== kept.workspaceId) return undefined
    return coversPrincipal(view.principal ?? kept.principal, kept.principal) ? kept : undefined
  }
  const write = (kept: FakeTask, wire: readonly StreamResponse[]) => {
    kept.log.push({ seq: ++seq, atMs: 0, wire })
    for (const wake of kept.readers) wake()
  }
  const settle = (kept: FakeTask, state: TaskState) => {
    const { id: taskId, contextId } = kept.task
    const artifact = { artifactId: 'reply', parts: kept.task.history?.[0]?.parts ?? [] }
    const replied = state === 'TASK_STATE_COMPLETED'
    kept.task = { ...kept.task, status: { state }, ...(replied && { artifacts: [artifact] }) }
    const reply = { artifactUpdate: { taskId, contextId, artifact, append: false, lastChunk: true } }
    write(kept, [...(replied ? [reply] : []), { statusUpdate: { taskId, contextId, status: { state } } }])
    kept.done.resolve()
  }
  const reception: Reception = {
    whileWaiting: (_parent, work) => work(),
    isAdmitted: async () => false,
    async markRead({ id }, { principal, conversationId }) {
      if (conversationId !== undefined) readResults.push([id, principal])
    },
    async admit(letter) {
      letters.push(letter)
      const { workspaceId, principal } = letter
      if (!(await exists(workspaceId))) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
      throwRequestedError(letter)
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
      const kept: FakeTask = { task, workspaceId, principal, done, log: [], readers: new Set() }
      tasks.set(id, kept)
      write(kept, [{ statusUpdate: { taskId: id, contextId, status: task.status } }])
      const text = message.parts[0]?.text
      if (text === 'ask') settle(kept, 'TASK_STATE_INPUT_REQUIRED')
      else if (text === 'fail') settle(kept, 'TASK_STATE_FAILED')
      else if (text !== 'slow') settle(kept, 'TASK_STATE_COMPLETED')
      return { taskId: id, contextId, duplicate: false }
    },
    async send(letter, { maxMs, onAdmitted }, signal) {
      const admitted = await reception.admit(letter)
      await onAdmitted?.(admitted)
      return (await reception.waitForResult(admitted.taskId, maxMs, signal)) as Task
    },
    async task(taskId, view = {}) {
      const task = find(taskId, view)?.task
      if (task === undefined || view.historyLength === undefined) return task
      return { ...task, history: task.history?.slice(task.history.length - view.historyLength) ?? [] }
    },
    async snapshot(taskId, view = {}) {
      const kept = find(taskId, view)
      return kept && { task: kept.task, seq: kept.log.at(-1)?.seq ?? 0, firstSeq: kept.log[0]?.seq ?? 0 }
    },
    artifact: async (taskId, artifactId, view = {}) =>
      find(taskId, view)?.task.artifacts?.find((each) => each.artifactId === artifactId),
    async list({ workspaceId, limit, after, artifacts = true }) {
      const mine = [...tasks.values()].filter((kept) => kept.workspaceId === workspaceId)
      const all = mine
        .map(({ task: { artifacts: made, ...task } }) => ({ ...task, ...(artifacts && made && { artifacts: made }) }))
        .reverse()
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after.id) + 1
      const page = all.slice(from, from + limit)
      const last = from + limit < all.length ? page.at(-1) : undefined
      return { tasks: page, total: all.length, ...(last && { next: { updatedAtMs: 0, id: last.id } }) }
    },
    async *follow(taskId, { afterSeq, untilFinal = false }, signal): AsyncIterable<LogEntry> {
      const kept = tasks.get(taskId) as FakeTask
      following++
      try {
        for (let last = afterSeq; !signal.aborted; ) {
          const next = kept.log.find((entry) => entry.seq > last)
          if (next === undefined) {
            const { state } = kept.task.status
            if (isFinal(state) || (!untilFinal && isInterrupted(state))) return
            await waitForLogEntry(kept, signal)
            continue
          }
          yield next
          last = next.seq
        }
      } finally {
        following--
      }
    },
    async waitForResult(taskId, maxMs, signal) {
      const kept = find(taskId)
      waiting++
      const ended = Promise.withResolvers<void>()
      const timer = setTimeout(ended.resolve, maxMs)
      const release = onAbort(signal, ended.resolve)
      await Promise.race([kept?.done.promise, ended.promise])
      release()
      clearTimeout(timer)
      waiting--
      return kept?.task
    },
    amend: async () => false,
    withdraw: async () => false,
    async cancel(taskId, view = {}) {
      const kept = find(taskId, view)
      if (kept === undefined) throw new MoleculeError('not_found', `there is no task ${taskId}`)
      const { state } = kept.task.status
      if (isFinal(state) && state !== 'TASK_STATE_CANCELED') throw new MoleculeError('not_cancelable', 'it has ended')
      settle(kept, 'TASK_STATE_CANCELED')
      return kept.task
    },
  }
  const finish = (taskId: string) => settle(tasks.get(taskId) as FakeTask, 'TASK_STATE_COMPLETED')
  const addLogRow = (taskId: string, wire: readonly StreamResponse[]) => write(tasks.get(taskId) as FakeTask, wire)
  return { reception, letters, readResults, waiting: () => waiting, following: () => following, addLogRow, finish }
}

async function waitForLogEntry({ readers }: FakeTask, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  readers.add(resolve)
  const release = onAbort(signal, resolve)
  await promise
  release()
  readers.delete(resolve)
}

/** Throws the error that the text of the message names. */
function throwRequestedError({ envelope: { message } }: Letter): void {
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
  const allSorted = () => [...all.values()].map(withLoad).sort((a, b) => (a.id < b.id ? -1 : 1))
  return {
    async create(input) {
      if (input.name === 'defect') throw new TypeError('cannot read "inside" of undefined')
      const workspace: Workspace = { ...base, ...made, ...input, id: `ws_9${String(all.size).padStart(25, '0')}` }
      add(workspace)
      return { ...workspace, warnings: [] }
    },
    check: async () => ({ ok: true }),
    async get(id) {
      const workspace = all.get(id)
      return workspace && withLoad(workspace)
    },
    idsNamed: async (name) => allSorted().flatMap((workspace) => (workspace.name === name ? [workspace.id] : [])),
    async list({ after = '', limit }) {
      const sorted = allSorted().filter(({ id }) => id > after)
      const page = sorted.slice(0, limit)
      const next = sorted.length > limit ? page.at(-1)?.id : undefined
      return { workspaces: page, ...(next !== undefined && { next }) }
    },
    all: async () => allSorted(),
  }
}

/** Push configs in memory: every task has one config, a new config is returned as it was set, and no URL is called. */
export function createFakePushContext(): PushContext {
  const stored = (workspaceId: string, taskId: string): StoredPush => ({
    workspaceId,
    taskId,
    id: 'hook',
    version: '1.0',
    config: { taskId, id: 'hook', url: 'https://hook.test/', token: 'a secret' },
    cursor: { seq: 0, k: 0 },
  })
  const nothing = async () => undefined
  return {
    check: nothing,
    wake: () => undefined,
    configs: {
      put: async ({ workspaceId, config }) => ({ ...stored(workspaceId, config.taskId), id: config.id, config }),
      list: async (workspaceId, taskId) => [stored(workspaceId, taskId)],
      remove: async () => true,
      nudge: nothing,
      claim: async () => [],
      renew: nothing,
      isCurrent: async () => true,
      advance: async () => true,
      fail: async () => 'later',
      idle: nothing,
      release: nothing,
    },
  }
}
