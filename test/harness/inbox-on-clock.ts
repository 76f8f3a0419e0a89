/**
 * A local inbox on a SQLite store of its own, for quick tests of one part of the inbox. Time stands still until the test
 * moves it, and the store is synchronous, so `pass` runs everything that is due: no test has to poll or to sleep.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../src/clock.ts'
import type { Directive, Lease, LeaseKey, Outcome } from '../../src/inbox/inbox.ts'
import { createLocalInbox, type LocalInbox } from '../../src/inbox/local-inbox.ts'
import type { Log } from '../../src/log.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Row, type Store, sql, statement, type Value } from '../../src/store/store.ts'
import { temporaryDir } from './process-harness.ts'

const DAY_MS = 24 * 3600_000
/** More than any chain of writes of these tests needs. */
const TURNS = 100

export interface LogLine {
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

export interface ClockedWorker {
  readonly id: string
  /** The directives that came since the last call. */
  take(): Promise<Directive[]>
  /** The one lease that came; its turn begins. Other directives are dropped. */
  lease(): Promise<Lease>
  leave(): Promise<void>
}

export interface ClockedInbox {
  readonly clock: LeapingClock
  readonly store: Store
  readonly local: LocalInbox
  /** The warnings so far. */
  readonly warnings: LogLine[]
  /** The workspaces of which other processes were told that they changed. The test may empty it. */
  readonly notified: string[]
  /** As another process on the same store does. */
  hint(): void
  /** Whether the inbox listens to other processes. */
  isListening(): boolean
  /** How often the inbox has read the store. */
  reads(): number
  /** The next writes fail with this error while the function returns one. */
  failWrites(failure: () => Error | undefined): void
  sql(text: string, ...values: Value[]): Promise<Row[]>
  /** Time passes, and everything that is due has run. */
  pass(ms?: number): Promise<void>
  workspace(options?: WorkspaceOptions): Promise<string>
  worker(workspaces: 'hosted' | readonly string[], id?: string): ClockedWorker
  state(taskId: string): Promise<string | undefined>
  load(workspaceId: string): Promise<Row>
}

/** A clock that stands still until the test moves it: each timer that is due then runs once, also after many periods. */
export interface LeapingClock extends Clock {
  advance(ms: number): void
  /** How many callbacks wait for their time. */
  timers(): number
  /** How many callbacks were cancelled after they had run: whoever does that keeps them for ever. */
  lateCancels(): number
}

export interface WorkspaceOptions {
  readonly id?: string
  readonly name?: string
  readonly slots?: number
  readonly hosted?: boolean
}

export const HOST = 'host'
export const done = (text: string): Outcome & { type: 'done' } => ({
  type: 'done',
  finality: 'completed',
  parts: [{ text }],
  artifacts: [],
})
export const keyOf = ({ workspaceId, conversationId, taskId, messageId, epoch }: Lease): LeaseKey => ({
  workspaceId,
  conversationId,
  taskId,
  messageId,
  epoch,
})
export const leasesIn = (directives: readonly Directive[]): Lease[] =>
  directives.flatMap((directive) => (directive.type === 'lease' ? [directive.lease] : []))

let workspaces = 0
let workers = 0

/** `engine` is what the store says that it is. Time begins at noon of today, so that a test may pass hours on the same day. */
export function openInboxOnClock(
  t: TestContext,
  { engine = 'sqlite' }: Partial<Pick<Store, 'engine'>> = {},
): ClockedInbox {
  const clock = leapingClock(Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2)
  const opened = openEmptyStore(join(temporaryDir(t), 'molecule.db'), clock)
  const warnings: LogLine[] = []
  const notified: string[] = []
  let failure: () => Error | undefined = () => undefined
  let reads = 0
  const listeners = new Set<(workspaceIds: readonly string[]) => void>()
  const store: Store = {
    ...opened,
    engine,
    async write(transaction, key) {
      const error = failure()
      if (error !== undefined) throw error
      return opened.write(transaction, key)
    },
    read(transaction) {
      reads += 1
      return opened.read(transaction)
    },
    notify: (ids) => notified.push(...ids),
    listen(callback) {
      listeners.add(callback)
      return () => listeners.delete(callback)
    },
  }
  const local = createLocalInbox({ store, clock, log: collectWarnings(warnings), host: HOST, keepSession: noSession })
  const pass = async (ms = 0) => {
    clock.advance(ms)
    for (let turn = 0; turn < TURNS; turn++) {
      await nextTurn()
      clock.advance(0)
    }
  }
  t.after(async () => {
    failure = () => undefined
    local.close()
    await pass()
    await opened.close()
  })
  const run = (text: string, values: readonly Value[]) => opened.write(() => sql(text, values))
  return {
    clock,
    store,
    local,
    warnings,
    notified,
    pass,
    hint: () => {
      for (const listener of listeners) listener([])
    },
    reads: () => reads,
    isListening: () => listeners.size > 0,
    failWrites: (given) => {
      failure = given
    },
    sql: (text, ...values) => run(text, values),
    async workspace({ id = `ws_${++workspaces}`, name = 'test', slots = 1, hosted = false } = {}) {
      await run(
        `insert into workspaces (id, name, role, runtime, settings, status, created_at)
         values ($1, $2, '', 'mock', '{}', 'online', now_ms())`,
        [id, name],
      )
      await run('insert into workspace_load (workspace_id, hosted, slots) values ($1, $2, $3)', [id, +hosted, slots])
      return id
    },
    worker: (served, id = `${HOST}.${++workers}`) => createClockedWorker({ id, workspaces: served }, { local, pass }),
    state: async (taskId) => (await local.reception.task(taskId))?.status.state,
    async load(id) {
      const [row] = await run('select running, waiting, suspended from workspace_load where workspace_id = $1', [id])
      return { ...row }
    },
  }
}

let template: Uint8Array | undefined

/** The migrations take longer than most of these tests, so they run once, and each test gets a copy of the file. */
function openEmptyStore(path: string, clock: Clock): Store {
  if (template !== undefined) writeFileSync(path, template)
  const opened = openSqlite({ path, clock })
  if (template !== undefined) return opened
  // The file is complete when the call returns; nothing is queued that it would wait for.
  void opened.close()
  template = readFileSync(path)
  return openSqlite({ path, clock })
}

function leapingClock(startMs: number): LeapingClock {
  let nowMs = startMs
  let lateCancels = 0
  const timers = new Set<{ readonly atMs: number; readonly callback: () => void }>()
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      const timer = { atMs: nowMs + Math.max(0, delayMs), callback }
      timers.add(timer)
      return () => {
        if (!timers.delete(timer)) lateCancels += 1
      }
    },
    timers: () => timers.size,
    lateCancels: () => lateCancels,
    advance(ms) {
      nowMs += ms
      const due = [...timers].filter(({ atMs }) => atMs <= nowMs).sort((one, other) => one.atMs - other.atMs)
      for (const timer of due) if (timers.delete(timer)) timer.callback()
    },
  }
}

const noSession = () => statement('select 1')

function collectWarnings(warnings: LogLine[]): Log {
  const ignore = () => undefined
  return {
    debug: ignore,
    info: ignore,
    warn: (fields, message) => warnings.push({ fields: { ...fields }, message }),
    error: (fields, message) => warnings.push({ fields: { ...fields }, message }),
  }
}

function createClockedWorker(
  worker: Parameters<LocalInbox['inbox']['leases']>[0],
  { local, pass }: { readonly local: LocalInbox; readonly pass: (ms?: number) => Promise<void> },
): ClockedWorker {
  const stop = new AbortController()
  const received: Directive[] = []
  const ended = (async () => {
    for await (const directive of local.inbox.leases(worker, stop.signal)) received.push(directive)
  })()
  const take = async () => {
    await pass()
    return received.splice(0)
  }
  return {
    id: worker.id,
    take,
    async lease() {
      const [lease, ...more] = leasesIn(await take())
      assert.ok(lease !== undefined, `no lease came to ${worker.id}`)
      assert.deepEqual(more, [])
      await local.inbox.begin(lease)
      return lease
    },
    async leave() {
      stop.abort()
      await ended
      await pass()
    },
  }
}
