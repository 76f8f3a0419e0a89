/**
 * The rows of the store, and the invariants of the inbox in terms of its rows. They need no model, so they are checked
 * in the concurrent test too.
 */
import assert from 'node:assert/strict'
import { type Store, sql, type Transaction } from '../../../src/store/store.ts'

export interface StoredMessageRow {
  id: string
  workspace_id: string
  conversation_id: string
  task_id: string
  principal: string
  envelope: string
  n: number
  state: string
  begun: number
  suspended: number
  failures: number
  losses: number
  interrupted: number
  ready_at: number
  settled_at: number | null
  reply: string | null
}

export interface StoredConversationRow {
  id: string
  workspace_id: string
  settled_n: number
  lease_epoch: number
  worker: string | null
  ready_at: number | null
}

interface TaskRow {
  id: string
  state: string
}

export interface StoredLoadRow {
  workspace_id: string
  slots: number
  running: number
  suspended: number
  waiting: number
  seq: number
}

interface EventRow {
  workspace_id: string
  seq: number
  task_id: string
  message_id: string
  items: string
}

export interface StoredRows {
  readonly now: number
  readonly messages: readonly StoredMessageRow[]
  readonly conversations: readonly StoredConversationRow[]
  readonly tasks: readonly TaskRow[]
  readonly loads: readonly StoredLoadRow[]
  readonly events: readonly EventRow[]
}

const TABLES = ['messages', 'conversations', 'tasks', 'workspace_load', 'workspaces', 'events', 'asks', 'sessions']

/** Empties the store before each run. */
export async function wipe(store: Store): Promise<void> {
  await store.write(function* () {
    for (const table of TABLES) yield* sql(`delete from ${table}`)
  })
}

export const readRows = (store: Store): Promise<StoredRows> => store.read(allRows)

function* allRows(): Transaction<StoredRows> {
  const [time] = yield* sql<{ now: number }>('select now_ms() as now')
  return {
    now: time?.now ?? 0,
    messages: yield* sql<StoredMessageRow>(
      `select m.id, m.workspace_id, m.conversation_id, m.task_id, c.principal, m.envelope, m.n, m.state,
         m.begun, m.suspended, m.failures, m.losses, m.interrupted, m.ready_at, m.settled_at, m.reply
       from messages m join conversations c on c.id = m.conversation_id order by m.conversation_id, m.n`,
    ),
    conversations: yield* sql<StoredConversationRow>(
      'select id, workspace_id, settled_n, lease_epoch, worker, ready_at from conversations',
    ),
    tasks: yield* sql<TaskRow>('select id, state from tasks'),
    loads: yield* sql<StoredLoadRow>(
      'select workspace_id, slots, running, suspended, waiting, seq from workspace_load',
    ),
    events: yield* sql<EventRow>(
      'select workspace_id, seq, task_id, message_id, items from events order by workspace_id, seq',
    ),
  }
}

export const isRunningRow = ({ state }: { state: string }) => state === 'leased' || state === 'stopping'
const isFinalState = (state: string) => /(COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state)

/** Invariants of the rows at one moment. */
export function checkRows(rows: StoredRows): void {
  for (const load of rows.loads) checkCounters(rows, load)
  for (const conversation of rows.conversations) checkConversation(rows, conversation)
  for (const load of rows.loads) {
    const seqs = rows.events.filter(({ workspace_id }) => workspace_id === load.workspace_id).map(({ seq }) => seq)
    const whole = Array.from({ length: load.seq }, (_, index) => index + 1)
    assert.deepEqual(seqs, whole, 'the log of a workspace is numbered without gaps')
  }
  const opening = new Set(rows.messages.filter((message) => message.id === message.task_id).map(({ id }) => id))
  for (const { id } of rows.tasks) assert.ok(opening.has(id), 'a task has the id of the message that opened it')
  const taskStates = new Map(rows.tasks.map(({ id, state }) => [id, state]))
  for (const message of rows.messages) {
    const { state, settled_at: settledAt, reply, task_id: taskId } = message
    const open = state === 'queued' || isRunningRow(message)
    assert.equal(settledAt === null, open, `${state} and settled_at ${settledAt}`)
    assert.ok(state !== 'done' || reply !== null, 'a message that is done has a reply')
    const isStopped = state === 'stopping' || state === 'canceled'
    assert.ok(reply === null || state === 'done' || isStopped, 'only done and cancelled messages have a reply')
    if (isFinalState(taskStates.get(taskId) ?? '')) {
      assert.ok(!open || state === 'stopping', `a final task has a message that is ${state}`)
    }
  }
}

function checkCounters({ messages }: StoredRows, load: StoredLoadRow): void {
  const own = messages.filter(({ workspace_id }) => workspace_id === load.workspace_id)
  const running = own.filter(isRunningRow)
  assert.deepEqual(
    { running: load.running, suspended: load.suspended, waiting: load.waiting },
    {
      running: running.filter(({ suspended }) => suspended === 0).length,
      suspended: running.filter(({ suspended }) => suspended === 1).length,
      waiting: own.filter(({ state }) => state === 'queued').length,
    },
    'the counters of a workspace match its messages',
  )
}

function checkConversation({ now, messages }: StoredRows, conversation: StoredConversationRow): void {
  const unsettled = messages.filter(
    ({ conversation_id, settled_at }) => conversation_id === conversation.id && settled_at === null,
  )
  const [head] = unsettled
  assert.ok(conversation.settled_n < (head?.n ?? Number.POSITIVE_INFINITY), 'every message up to settled_n is settled')
  const running = unsettled.filter(isRunningRow)
  assert.ok(running.length <= 1, 'one turn at a time in a conversation')
  if (running.length > 0) assert.equal(running[0], head, 'the running message is the oldest of its conversation')
  assert.equal(conversation.worker !== null, running.length > 0, 'a conversation is leased exactly while a turn runs')
  const waits = running.length === 0 && head !== undefined
  assert.equal(conversation.ready_at !== null, waits, 'a conversation is ready exactly when its oldest message waits')
  if (!waits) return
  const due = (at: number | null | undefined) => (at ?? 0) <= now
  assert.equal(due(conversation.ready_at), due(head?.ready_at), 'a conversation is due when its oldest message is')
}

/** Invariants between two reads of the rows. */
export function checkProgress(before: StoredRows, after: StoredRows): void {
  const conversations = new Map(after.conversations.map((row) => [row.id, row]))
  for (const old of before.conversations) {
    assert.ok((conversations.get(old.id)?.lease_epoch ?? -1) >= old.lease_epoch, 'epochs only grow')
  }
  const tasks = new Map(after.tasks.map((row) => [row.id, row]))
  for (const old of before.tasks) {
    if (isFinalState(old.state)) assert.equal(tasks.get(old.id)?.state, old.state, 'a final task keeps its state')
  }
  const messages = new Map(after.messages.map((row) => [row.id, row]))
  for (const old of before.messages) {
    const now = messages.get(old.id)
    assert.ok(now, 'no message is ever lost')
    if (old.reply !== null) assert.equal(now.reply, old.reply, 'a reply is never changed')
    if (old.settled_at !== null && old.state !== 'answer') assert.equal(now.state, old.state)
  }
  const events = new Map(after.events.map((row) => [`${row.workspace_id} ${row.seq}`, row]))
  for (const old of before.events) {
    const now = events.get(`${old.workspace_id} ${old.seq}`)
    assert.equal(now?.items, old.items, 'a log entry never changes, and none is inserted before it')
  }
}
