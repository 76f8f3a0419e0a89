/**
 * An inbox whose rows a test plants and compares: a real SQLite store, a clock that stands still, and every row that a
 * call changed. A test that plants rows beside the one it works on proves that the call touches no other row.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Clock } from '../../src/clock.ts'
import type { Directive, LeaseKey, Worker } from '../../src/inbox/inbox.ts'
import { createLocalInbox, type LocalInbox } from '../../src/inbox/local-inbox.ts'
import { silentLog } from '../../src/log.ts'
import { readReply } from '../../src/protocol/stored-reply.ts'
import { keepSession } from '../../src/sessions/sessions.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Row, type Store, sql, type Transaction, type Value } from '../../src/store/store.ts'
import { letterTo, SENDER } from '../fakes/letters.ts'
import { type ManualClock, manualClock } from '../fakes/manual-clock.ts'
import { temporaryDir } from './process-harness.ts'

/** The time of every test at its start. */
export const START_MS = 1_000_000
/** The worker that holds every planted lease, and its host. */
export const HOST = 'host'
export const WORKER = 'host.1'

/** The primary key of each table that is compared. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  workspace_load: ['workspace_id'],
  conversations: ['id'],
  tasks: ['id'],
  messages: ['id'],
  events: ['workspace_id', 'seq'],
  asks: ['message_id', 'epoch', 'id'],
  deliveries: ['id'],
  delivery_parts: ['delivery_id', 'n'],
  push_configs: ['task_id', 'id'],
  sessions: ['conversation_id'],
  permission_rules: ['id'],
  turn_notes: ['message_id', 'key'],
  turn_usage: ['message_id', 'epoch'],
  budgets: ['id'],
}
/** Turns of the event loop; a write takes about three. */
const TURNS_OF_WORK = 40
const JSON_COLUMNS = ['items', 'status_message', 'body']

/** By `table key`: the new values of the changed columns, or `deleted`. A new row has all its values but null. */
export type Changes = Record<string, Record<string, unknown> | 'deleted'>

export interface InboxRows {
  readonly local: LocalInbox
  readonly store: Store
  readonly clock: ManualClock
  /** The workspaces that other processes got a hint about, since the last call. */
  hints(): string[]
  /** While it lasts, every write fails. */
  setOutage(lasts: boolean): void
  /** The moments that the inbox reported. */
  readonly checkpoints: string[]
  /** A worker that takes every directive; it has taken the first ones when this resolves. */
  connect(worker?: Partial<Worker>): Promise<ConnectedWorker>
  plant(table: string, row: Readonly<Record<string, Value>>): Promise<void>
  /** A queue of ten slots that no worker of the platform serves. */
  workspace(id: string, row?: Readonly<Record<string, Value>>): Promise<void>
  /** A message that opened a task of its own name, in a conversation `c-<id>`. */
  message(id: string, row?: Readonly<Record<string, Value>>): Promise<void>
  /** Messages of both workspaces, `w` and `other`, in every state: `w-queued`, `other-leased`. */
  bystanders(): Promise<void>
  write<T>(transaction: () => Transaction<T>): Promise<T>
  select(text: string, ...values: Value[]): Promise<Row[]>
  /** Runs the timers that are due and lets the inbox end the work that they began. */
  finishWork(): Promise<void>
  /** Every row that the work changed. */
  changes(work: () => Promise<unknown>): Promise<Changes>
}

export interface ConnectedWorker {
  readonly received: readonly Directive[]
  leave(): Promise<void>
}

/** The key of a planted lease. */
export const keyOf = (id: string, key: Partial<LeaseKey> = {}): LeaseKey => ({
  workspaceId: 'w',
  conversationId: `c-${id}`,
  taskId: id,
  messageId: id,
  epoch: 1,
  ...key,
})

/** The file of an empty store, made once: its migrations take longer than most tests. */
let emptyStore: Buffer | undefined

function openStore(t: TestContext, clock: Clock): Store {
  const path = join(temporaryDir(t), 'molecule.db')
  if (emptyStore === undefined) {
    void openSqlite({ path, clock }).close()
    emptyStore = readFileSync(path)
  } else writeFileSync(path, emptyStore)
  return openSqlite({ path, clock })
}

export function openInboxRows(t: TestContext): InboxRows {
  const clock = manualClock(START_MS)
  const opened = openStore(t, clock)
  const hinted: string[] = []
  let isDown = false
  const store: Store = {
    ...opened,
    notify: (ids) => void hinted.push(...ids),
    write: (...given) => (isDown ? Promise.reject(new Error('the store is down')) : opened.write(...given)),
  }
  const checkpoints: string[] = []
  const local = createLocalInbox({
    store,
    clock,
    log: silentLog,
    host: HOST,
    onCheckpoint: (checkpoint) => void checkpoints.push(checkpoint),
    keepSession: (key, token) => keepSession(HOST, key, token),
    keepSessionOn: (place) => (key, token) => keepSession(place, key, token),
  })
  t.after(async () => {
    local.close()
    await store.close()
  })
  const plant = async (table: string, row: Readonly<Record<string, Value>>) => {
    const names = Object.keys(row)
    const marks = names.map((_, index) => `$${index + 1}`)
    const text = `insert into ${table} (${names.join(', ')}) values (${marks.join(', ')})`
    await store.write(() => sql(text, Object.values(row)))
  }
  const rows: InboxRows = {
    local,
    store,
    clock,
    plant,
    checkpoints,
    async connect(worker) {
      const connected = connectWorker(t, local, { id: WORKER, workspaces: ['w'], ...worker })
      await rows.finishWork()
      return connected
    },
    setOutage: (lasts) => {
      isDown = lasts
    },
    hints: () => hinted.splice(0),
    workspace: (id, row) => plant('workspace_load', { workspace_id: id, hosted: 0, slots: 10, ...row }),
    message: (id, row) => plantMessage(plant, id, row),
    async bystanders() {
      const places = ['w', 'other'].flatMap((workspace) =>
        Object.keys(TASK_STATES).map((state) => ({ workspace, state })),
      )
      const plantOne = ({ workspace, state }: (typeof places)[number]) =>
        plantMessage(plant, `${workspace}-${state}`, { workspace_id: workspace, state })
      await Promise.all(places.map(plantOne))
    },
    write: (transaction) => store.write(transaction),
    select: (text, ...values) => store.read(() => sql(text, values)),
    async finishWork() {
      for (let turn = 0; turn < TURNS_OF_WORK; turn++) {
        clock.advance(0)
        await clock.settle()
      }
    },
    async changes(work) {
      const before = await readAll(store)
      await work()
      return compare(before, await readAll(store))
    },
  }
  return rows
}

function connectWorker(t: TestContext, local: LocalInbox, worker: Worker): ConnectedWorker {
  const stop = new AbortController()
  const received: Directive[] = []
  const take = async () => {
    for await (const directive of local.inbox.leases(worker, stop.signal)) received.push(directive)
  }
  const taken = take()
  const leave = () => {
    stop.abort()
    return taken
  }
  t.after(leave)
  return { received, leave }
}

/** The states of a message, each with that of its task. */
const TASK_STATES: Readonly<Record<string, string>> = {
  queued: 'SUBMITTED',
  leased: 'WORKING',
  stopping: 'CANCELED',
  done: 'COMPLETED',
  dead: 'FAILED',
  canceled: 'CANCELED',
}

/** All rows are written in one commit, in this order. */
async function plantMessage(
  plant: InboxRows['plant'],
  id: string,
  { worker = WORKER, lease_until = START_MS + 30_000, lease_epoch = 1, ...row }: Readonly<Record<string, Value>> = {},
): Promise<void> {
  const { workspace_id = 'w', conversation_id = `c-${id}`, task_id = id, state = 'queued', n = 1 } = row
  const isRunning = state === 'leased' || state === 'stopping'
  const place = { workspace_id, principal: 'people', context_id: `context-${conversation_id}` }
  const lease = isRunning ? { worker, lease_until } : {}
  const ready = state === 'queued' ? { ready_at: row['ready_at'] ?? START_MS + 60_000 } : {}
  const conversation = { id: conversation_id, ...place, last_n: n, lease_epoch, ...lease, ...ready }
  const times = { created_at: START_MS, updated_at: START_MS }
  const task = { id, conversation_id, ...place, ...times, state: `TASK_STATE_${TASK_STATES[String(state)]}` }
  const message = {
    id,
    workspace_id,
    conversation_id,
    task_id,
    n,
    state,
    begun: isRunning ? 1 : 0,
    dedupe: Buffer.from(id),
    content_hash: '',
    idempotency_key: `key-${id}`,
    sender: JSON.stringify(SENDER),
    envelope: JSON.stringify(letterTo('w', { messageId: id, text: `text of ${id}` }).envelope.raw),
    admitted_at: START_MS,
    ready_at: START_MS + 60_000,
    expires_at: START_MS + 90_000,
    ...(!isRunning && state !== 'queued' && { settled_at: START_MS }),
    ...row,
  }
  await Promise.all([
    row['conversation_id'] === undefined && plant('conversations', conversation),
    row['task_id'] === undefined && plant('tasks', task),
    plant('messages', message),
  ])
}

type Snapshot = ReadonlyMap<string, Row>

async function readAll(store: Store): Promise<Snapshot> {
  const found = new Map<string, Row>()
  for (const [table, keys] of Object.entries(KEYS))
    for (const row of await store.read(() => sql(`select * from ${table}`)))
      found.set([table, ...keys.map((key) => row[key])].join(' '), row)
  return found
}

function compare(before: Snapshot, after: Snapshot): Changes {
  const changes: Changes = {}
  for (const name of before.keys()) if (!after.has(name)) changes[name] = 'deleted'
  for (const [name, row] of after) {
    const old = before.get(name)
    const keys = KEYS[name.split(' ')[0] ?? ''] ?? []
    const isNew = (column: string) => old === undefined && row[column] !== null && !keys.includes(column)
    const isChanged = (column: string) => old !== undefined && toText(old[column]) !== toText(row[column])
    const columns = Object.keys(row).filter((column) => isNew(column) || isChanged(column))
    if (columns.length > 0) changes[name] = Object.fromEntries(columns.map((column) => [column, toValue(column, row)]))
  }
  return withShortIds(changes)
}

/** Ids that the inbox made become `id-1`, `id-2`, in the order of their rows. */
function withShortIds(changes: Changes): Changes {
  const ids = new Map<string, string>()
  const shorten = (id: string) => ids.get(id) ?? (ids.set(id, `id-${ids.size + 1}`).get(id) as string)
  return JSON.parse(JSON.stringify(changes).replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, shorten)) as Changes
}

const toText = (value: Value | undefined): string => JSON.stringify(value) ?? ''

function toValue(column: string, row: Row): unknown {
  const value = row[column]
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  if (column === 'reply' && typeof value === 'string') return readReply(value, '')
  return JSON_COLUMNS.includes(column) && typeof value === 'string' ? JSON.parse(value) : value
}
