/**
 * What a worker says while its turn runs: events, and that it is still there. Both answer how the lease stands, which
 * is how a worker on another machine hears that its message was cancelled or taken over.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import type { LeaseKey, LeaseStanding, NumberedEvents } from '../inbox.ts'
import { LEASE_MS } from '../lease/claim.ts'
import { lockWorkspace } from '../lease/lock-workspace.ts'
import { type LogItem, recordChange } from '../read/event-log.ts'

interface HeldRow {
  lease_epoch: number
  state: string
  task_id: string
  appended: number
}

export function* append(key: LeaseKey, numbered: NumberedEvents): Transaction<LeaseStanding> {
  const held = yield* heldBy(key)
  if (held === undefined) return 'stale'
  const items = unseenItems(numbered, held.appended)
  for (const [name, value] of Object.entries(numbered.notes ?? {})) yield* keepNote(key, { name, value })
  if (items.length > 0) {
    const entries = [{ taskId: held.task_id, messageId: key.messageId, items }]
    yield* together([
      statement('update messages set appended = $2 where id = $1', [key.messageId, held.appended + items.length]),
      ...recordChange({ workspaceId: key.workspaceId, entries }),
    ])
  }
  return standing(held)
}

function* keepNote(key: LeaseKey, { name, value }: { name: string; value: string }): Transaction<void> {
  yield* sql(
    `insert into turn_notes (message_id, key, value, task_id, workspace_id) values ($1, $2, $3, $4, $5)
     on conflict (message_id, key) do update set value = excluded.value`,
    [key.messageId, name, value, key.taskId, key.workspaceId],
  )
}

export function* extend(key: LeaseKey): Transaction<LeaseStanding> {
  const held = yield* heldBy(key)
  if (held === undefined) return 'stale'
  yield* sql(`update conversations set lease_until = now_ms() + ${LEASE_MS} where id = $1`, [key.conversationId])
  return standing(held)
}

/** The events that are new to the log: a repeated append, its answer having been lost, adds nothing. */
export function unseenItems(numbered: NumberedEvents | undefined, appended: number): LogItem[] {
  if (numbered === undefined) return []
  const seen = Math.max(0, appended + 1 - numbered.from)
  return numbered.events.slice(seen).map((event) => ({ t: 'turn', event }))
}

function* heldBy(key: LeaseKey): Transaction<HeldRow | undefined> {
  const [, [held]] = (yield* together([
    lockWorkspace(key.workspaceId),
    statement(
      `select c.lease_epoch, m.state, m.task_id, m.appended
       from messages m join conversations c on c.id = m.conversation_id where m.id = $1`,
      [key.messageId],
    ),
  ])) as unknown as [unknown, HeldRow[]]
  const current = held?.lease_epoch === key.epoch && (held.state === 'leased' || held.state === 'stopping')
  return current ? held : undefined
}

const standing = (held: HeldRow): LeaseStanding => (held.state === 'stopping' ? 'stop' : 'held')
