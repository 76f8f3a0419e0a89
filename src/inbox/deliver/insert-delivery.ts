/**
 * Deliveries that doors write themselves, and their way on to other addresses. Invariant: a workspace whose agent speaks
 * first sends at most so many messages an hour, whatever the agent does.
 */
import { formatWait, HOUR_MS } from '../../duration.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import type { ForwardTo, NewDelivery, ReplyAddress } from '../delivery.ts'

/** Messages of a workspace without a task, each chat counted. A further one is refused. */
export const MESSAGES_PER_HOUR_MAX = 30

export function* insertDelivery(delivery: NewDelivery): Transaction<void> {
  const { id, door, channel, body } = delivery
  if ('taskId' in delivery) {
    // For the first message of the task: without one there is no task.
    yield* sql(
      `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, next_at, created_at)
       select $1, m.workspace_id, m.task_id, m.id, $3, $4, $5, 'pending', now_ms(), now_ms()
       from messages m where m.task_id = $2 order by m.n limit 1 on conflict (id) do nothing`,
      [id, delivery.taskId, door, channel, JSON.stringify(body)],
    )
    return
  }
  const { workspaceId, purpose } = delivery
  if (purpose === 'message') yield* requireRate(workspaceId)
  yield* sql(
    `insert into deliveries (id, workspace_id, purpose, door, channel, body, state, next_at, created_at)
     values ($1, $2, $3, $4, $5, $6, 'pending', now_ms(), now_ms()) on conflict (id) do nothing`,
    [id, workspaceId, purpose, door, channel, JSON.stringify(body)],
  )
}

/** Throws `too_many_requests`, with the time after which there is room for one more. */
function* requireRate(workspaceId: string): Transaction<void> {
  // Lock first: two messages at once would both be the last one.
  const [load] = yield* sql('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId])
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  const [sent] = yield* sql<{ messages: number; age: number | null }>(
    `select count(*) as messages, now_ms() - min(created_at) as age from deliveries
     where workspace_id = $1 and task_id is null and purpose = 'message' and created_at > now_ms() - ${HOUR_MS}`,
    [workspaceId],
  )
  if (Number(sent?.messages) < MESSAGES_PER_HOUR_MAX) return
  const retryAfterMs = Math.max(1, HOUR_MS - Number(sent?.age))
  const message = `this workspace has sent ${MESSAGES_PER_HOUR_MAX} messages to chats within an hour; the next one can go in ${formatWait(retryAfterMs)}`
  throw new MoleculeError('too_many_requests', message, { retryable: true, details: { retryAfterMs } })
}

/** False when another process was faster. */
export function sendOn(id: string, to: ForwardTo, store: Pick<Store, 'write'>): Promise<boolean> {
  // Drawn outside of the transaction, which may run twice.
  const copies = to.addresses.map((address) => ({ ...address, id: ulid() }))
  return store.write(() => forward(id, { ...to, copies }))
}

function* forward(
  id: string,
  { copies, reason }: ForwardTo & { readonly copies: readonly (ReplyAddress & { readonly id: string })[] },
): Transaction<boolean> {
  const [state, error] = copies.length === 0 ? ['failed', reason] : ['sent', null]
  const ended = yield* sql(
    `update deliveries set state = $2, error = $3, finished_at = now_ms() where id = $1 and state = 'pending' returning id`,
    [id, state, error],
  )
  if (ended.length === 0) return false
  yield* together(
    copies.map(({ id: copyId, door, channel }) =>
      statement(
        `insert into deliveries (id, workspace_id, task_id, message_id, purpose, door, channel, body, state, next_at,
           created_at)
         select $2, workspace_id, task_id, message_id, purpose, $3, $4, body, 'pending', now_ms(), now_ms()
         from deliveries where id = $1`,
        [id, copyId, door, channel],
      ),
    ),
  )
  return true
}
