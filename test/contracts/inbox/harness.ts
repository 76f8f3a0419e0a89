/**
 * The harness of the inbox contract: a store under test, workspaces inserted by SQL, and workers that lease and settle.
 * Test workspaces are not hosted, so each worker serves only the workspace of its own test.
 */
import assert from 'node:assert/strict'
import type { ApiAnswer } from '../../../src/api/api.ts'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { createWorkspaceLogs, type WorkspaceLogs } from '../../../src/doors/workspace-logs.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { LocalInbox } from '../../../src/inbox/local/local-inbox.ts'
import type { Letter } from '../../../src/inbox/reception.ts'
import type { Directive, Lease, Outcome } from '../../../src/inbox/worker.ts'
import { type Row, type Store, sql, type Value } from '../../../src/store/store.ts'
import { readActivity } from '../../../src/views/activity.ts'
import { insertWorkspace } from '../../harness/stores/insert-workspace.ts'
import { openLocalInbox } from '../../harness/stores/local-inbox.ts'
import { within } from '../../harness/wait.ts'
import type { StoreUnderTest } from '../store-contract.ts'

export const HOST = 'test-host'
export const failure = { code: 'exit', message: 'it broke' }
export const done = (text: string): Outcome => ({
  type: 'done',
  finality: 'completed',
  parts: [{ text }],
  artifacts: [],
})
export const hasCode = (expected: string) => (error: unknown) =>
  error instanceof MoleculeError && error.code === expected

export interface TestWorker {
  /** The next directive, which must be a lease; its turn begins. Answers are skipped, because the sweep may repeat one, and so are waits. */
  lease(): Promise<Lease>
  next(): Promise<Directive>
  /** True when no directive comes for a moment. */
  idle(): Promise<boolean>
  leave(): Promise<void>
}

export interface InboxHarness {
  open(): Promise<void>
  close(): Promise<void>
  readonly store: Store
  readonly local: LocalInbox
  /** The logs of workspaces, as doors follow them. */
  readonly logs: WorkspaceLogs
  /** Resolves once `local` begins a wait of exactly this time: a call of a bridge then has its worker queue. */
  waitBegins(ms: number): Promise<void>
  /** A second process on the same store, with its own clock if the test moves time. */
  newInbox(clock?: Clock, store?: Store): LocalInbox
  /** Runs SQL without the inbox, for example to make time pass in the store. */
  sql(text: string, ...values: Value[]): Promise<Row[]>
  workspace(slots?: number): Promise<string>
  load(id: string): Promise<object>
  /** The first 100 entries of the activity, of all types or of one. */
  activity(workspaceId: string, type?: string): Promise<ApiAnswer<'GET /workspaces/{id}/activity'>['activity']>
  /** A worker of that workspace, or of all that are hosted. */
  worker(id: string | 'hosted', local?: LocalInbox): TestWorker
  withWorker<T>(id: string, work: (worker: TestWorker) => Promise<T>): Promise<T>
  /** Admits a message and settles its turn. Returns the lease of that turn. */
  run(letter: Letter, outcome: Outcome): Promise<Lease>
  state(taskId: string): Promise<string | undefined>
}

export function createInboxHarness({ open }: StoreUnderTest): InboxHarness {
  let opened: Awaited<ReturnType<StoreUnderTest['open']>>
  let local: LocalInbox
  let logs: WorkspaceLogs
  const waits = observeWaits()
  const harness: InboxHarness = {
    async open() {
      opened = await open()
      local = harness.newInbox(waits.clock)
      logs = createWorkspaceLogs(local)
    },
    async close() {
      local.close()
      await opened.dispose()
    },
    get store() {
      return opened.store
    },
    get local() {
      return local
    },
    get logs() {
      return logs
    },
    activity: async (id, type) => (await readActivity(local.store, { workspaceId: id, type, limit: 100 })).activity,
    sql: (text, ...values) => opened.store.write(() => sql(text, values)),
    waitBegins: waits.begins,
    newInbox: (clock = systemClock, store = opened.store) => openLocalInbox(store, clock, HOST),
    workspace: (slots = 1) => insertWorkspace(opened.store, { hosted: 0, slots }),
    async load(id) {
      const [row] = await opened.store.read(() =>
        sql('select running, waiting from workspace_load where workspace_id = $1', [id]),
      )
      return { ...row }
    },
    worker: (id, inbox = local) => createTestWorker(inbox, id),
    async withWorker(id, work) {
      const worker = createTestWorker(local, id)
      try {
        return await work(worker)
      } finally {
        await worker.leave()
      }
    },
    async run(letter, outcome) {
      await local.reception.admit(letter)
      return await harness.withWorker(letter.workspaceId, async (worker) => {
        const lease = await worker.lease()
        await local.inbox.settle(lease, outcome)
        return lease
      })
    },
    state: async (taskId) => (await local.reception.task(taskId))?.status.state,
  }
  return harness
}

/** The system's clock, which also says that a wait of some time begins. */
function observeWaits(): { readonly clock: Clock; begins(ms: number): Promise<void> } {
  const awaited = new Map<number, () => void>()
  return {
    clock: {
      ...systemClock,
      after(delayMs, callback) {
        awaited.get(delayMs)?.()
        return systemClock.after(delayMs, callback)
      },
    },
    begins(ms) {
      const { promise, resolve } = Promise.withResolvers<void>()
      awaited.set(ms, resolve)
      return within(promise, `a wait of ${ms} ms`)
    },
  }
}

let workers = 0

/** A worker that the test drives: it takes directives one at a time. */
function createTestWorker(local: LocalInbox, id: string): TestWorker {
  const stop = new AbortController()
  const worker = { id: `${HOST}.${++workers}`, workspaces: id === 'hosted' ? ('hosted' as const) : [id] }
  const directives = local.inbox.leases(worker, stop.signal)[Symbol.asyncIterator]()
  // Call `next` at once: a worker has its queue from the first call on.
  let waiting: Promise<IteratorResult<Directive>> | undefined = directives.next()
  const next = async (): Promise<Directive> => {
    waiting ??= directives.next()
    const { value } = await within(waiting, `a directive for the worker of ${id}`)
    waiting = undefined
    return value as Directive
  }
  return {
    async lease() {
      let directive = await next()
      while (directive?.type === 'answer' || directive?.type === 'waiting') directive = await next()
      assert.equal(directive?.type, 'lease')
      const { lease } = directive as { lease: Lease }
      await local.inbox.begin(lease)
      return lease
    },
    next,
    async idle() {
      waiting ??= directives.next()
      const quiet = new Promise<boolean>((resolve) => setTimeout(resolve, 50, true))
      return await Promise.race([waiting.then(() => false), quiet])
    },
    async leave() {
      stop.abort()
      await directives.return?.()
      await waiting
    },
  }
}
