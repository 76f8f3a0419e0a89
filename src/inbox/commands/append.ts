/**
 * What a worker reports while its turn runs: that it begins, its events, and that it is still alive. Each answer says
 * how the lease stands; this is how a worker on another machine learns that its turn was cancelled or taken over.
 */
import { runStatement, sql, statement, type Transaction, together } from '../../store/store.ts'
import { extendLease } from '../rows/conversation.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type LogItem, recordChange } from '../rows/log.ts'
import { isRunning, type MessageState } from '../rows/message.ts'
import { storeAppended } from '../rows/message-updates.ts'
import type { LeaseKey, LeaseStanding, NumberedEvents, RenewedStanding } from '../worker.ts'

interface HeldRow {
  lease_epoch: number
  state: MessageState
  task_id: string
  appended: number
  begun: number
  suspended: number
}

/** A cancelled turn does not begin: its worker stops before it starts the backend. */
export function* begin(key: LeaseKey, text: string | undefined): Transaction<LeaseStanding> {
  const held = yield* lockHeldRow(key)
  if (held === undefined) return 'stale'
  if (held.state === 'stopping' || held.begun === 1) return standing(held)
  yield* storeItems(key, held, text === undefined ? [] : [{ t: 'turn', event: { type: 'status', text } }])
  return standing(held)
}

/** Also begins the turn: bridges of earlier versions send a first event instead of `begin`. */
export function* append(key: LeaseKey, numbered: NumberedEvents): Transaction<LeaseStanding> {
  const held = yield* lockHeldRow(key)
  if (held === undefined) return 'stale'
  for (const [name, value] of Object.entries(numbered.notes ?? {})) yield* keepNote(key, { name, value })
  const items = unseenItems(numbered, held.appended)
  const appended = held.appended + items.length
  if (items.length > 0 || held.begun === 0) yield* storeItems(key, { ...held, appended }, items)
  return standing(held)
}

function* storeItems(key: LeaseKey, { task_id, appended }: HeldRow, items: readonly LogItem[]): Transaction<void> {
  const entries = [{ taskId: task_id, messageId: key.messageId, items }]
  yield* together([
    storeAppended(key.messageId, appended),
    ...(items.length === 0 ? [] : recordChange({ workspaceId: key.workspaceId, entries })),
  ])
}

function* keepNote(key: LeaseKey, { name, value }: { name: string; value: string }): Transaction<void> {
  yield* sql(
    `insert into turn_notes (message_id, key, value, task_id, workspace_id) values ($1, $2, $3, $4, $5)
     on conflict (message_id, key) do update set value = excluded.value`,
    [key.messageId, name, value, key.taskId, key.workspaceId],
  )
}

export function* extend(key: LeaseKey): Transaction<RenewedStanding> {
  const held = yield* lockHeldRow(key)
  if (held === undefined) return 'stale'
  yield* runStatement(extendLease(key.conversationId))
  return held.suspended === 1 && held.state === 'leased' ? 'waiting' : standing(held)
}

/** The events that the log does not have. A worker whose answer was lost repeats its append; that adds nothing. */
export function unseenItems(numbered: NumberedEvents | undefined, appended: number): LogItem[] {
  if (numbered === undefined) return []
  const seen = Math.max(0, appended + 1 - numbered.from)
  return numbered.events.slice(seen).map((event) => ({ t: 'turn', event }))
}

/** The leased message, with its workspace locked; undefined when the epoch is stale. */
function* lockHeldRow(key: LeaseKey): Transaction<HeldRow | undefined> {
  const [, [held]] = (yield* together([
    lockWorkspace(key.workspaceId),
    statement(
      `select c.lease_epoch, m.state, m.task_id, m.appended, m.begun, m.suspended
       from messages m join conversations c on c.id = m.conversation_id where m.id = $1`,
      [key.messageId],
    ),
  ])) as unknown as [unknown, HeldRow[]]
  const current = held?.lease_epoch === key.epoch && isRunning(held.state)
  return current ? held : undefined
}

const standing = (held: HeldRow): LeaseStanding => (held.state === 'stopping' ? 'stop' : 'held')
