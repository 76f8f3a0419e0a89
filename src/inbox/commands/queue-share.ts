/**
 * The limit of a workspace's queue, and each principal's share of it: at most half of what the others leave free. Without
 * the share one sender could fill the queue, and everyone else would get 429 until its messages have run. All
 * conversations of a sending workspace have one share; otherwise each new conversation would get a share of its own.
 */
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { topPrincipal } from '../read/principals.ts'
import type { Letter } from '../reception.ts'
import { IS_RUNNING, inStates } from '../rows/message.ts'

/** Messages that may wait in one workspace; the next sender gets 429 with `Retry-After`. */
const QUEUE_MESSAGES_MAX = 1000
const QUEUE_RETRY_AFTER_MS = 5000

/** `waiting`: all messages that wait in the workspace. Throws `queue_full` when the queue, or the principal's share of it, has no place for one more message. */
export function* requireQueueShare({ workspaceId, principal }: Letter, waiting: number): Transaction<void> {
  const free = QUEUE_MESSAGES_MAX - waiting
  if (free <= 0) throw queueFull(`the workspace's queue is full: ${waiting} messages wait`)
  // With half of the queue free, no principal can be over its share: nothing has to be counted.
  if (waiting < free) return
  const sender = topPrincipal(principal)
  const [row] = yield* sql<{ own: number }>(COUNT_OWN, [workspaceId, sender, `${sender}/`])
  const own = Number(row?.own ?? 0)
  // "Half of what the others leave free" is (MAX - (waiting - own)) / 2, and own is below that while own < free.
  if (own < free) return
  throw queueFull(`${own} messages of this sender wait in the workspace, which is its share of the queue`)
}

/** Reads only conversations in which a message waits or runs, each by its own index. */
const COUNT_OWN = `select count(*) as own from conversations c
  join messages m on m.conversation_id = c.id and m.n > c.settled_n and m.${inStates('queued')}
  where (c.principal = $2 or substr(c.principal, 1, length($3)) = $3) and c.id in (
    select r.id from conversations r where r.workspace_id = $1 and r.ready_at is not null
    union all select l.conversation_id from messages l where l.${IS_RUNNING} and l.workspace_id = $1)`

function queueFull(message: string): MoleculeError {
  return new MoleculeError('queue_full', message, { retryable: true, details: { retryAfterMs: QUEUE_RETRY_AFTER_MS } })
}
