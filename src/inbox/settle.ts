/**
 * Settling: one transaction closes a lease with its outcome, so that a crash after it never runs the agent again.
 * The freed slot goes to the oldest ready conversation in the same transaction. Fenced by the epoch: a result that
 * comes after a takeover is kept in the log and is never a second reply.
 */
import { statement, type Transaction, together } from '../store/store.ts'
import { unseenItems } from './append.ts'
import { type Claim, takeOldest } from './claim.ts'
import { freeConversation } from './conversation.ts'
import { closeBooks, type Item } from './event-log.ts'
import type { LeaseKey, Outcome } from './inbox.ts'
import { type Ended, type HeldMessage, recordOutcome, type Settlement } from './outcome.ts'

export interface Settled {
  readonly answer: 'settled' | 'stale'
  /** What the freed slot went to. */
  readonly next: { readonly worker: string; readonly claim: Claim } | undefined
}

export function* settle(settlement: Settlement): Transaction<Settled> {
  const { key, outcome } = settlement
  const { held, message } = yield* openLease(key)
  if (held === undefined || message === undefined) return { answer: 'stale', next: undefined }
  // The answer to an earlier settle was lost and the worker asks again: the same word changes nothing.
  if (message.settled_epoch === key.epoch) {
    return { answer: message.outcome === outcome.type ? 'settled' : 'stale', next: undefined }
  }
  const running = message.state === 'leased' || message.state === 'stopping'
  if (held.lease_epoch !== key.epoch || !running) {
    yield* keepLate(key, outcome)
    return { answer: 'stale', next: undefined }
  }
  const ended = yield* recordOutcome(settlement, message)
  yield* freeConversation(key.conversationId)
  // A suspended turn has no slot to hand on.
  const hands = message.suspended === 0 && held.worker !== null && settlement.accepts(held.worker)
  const worker = hands ? (held.worker as string) : undefined
  const claim = worker === undefined ? undefined : yield* takeOldest(key.workspaceId, worker)
  yield* closeBooks(books(settlement, { message, ended, next: claim }))
  const next = worker === undefined || claim === undefined ? undefined : { worker, claim }
  return { answer: 'settled', next }
}

interface HeldConversation {
  lease_epoch: number
  worker: string | null
}

/** Locked in the order that every transaction keeps (load, conversation, message), or two nodes would deadlock. */
function* openLease(
  key: LeaseKey,
): Transaction<{ held: HeldConversation | undefined; message: HeldMessage | undefined }> {
  const [, [held], [message]] = (yield* together([
    statement('select slots from workspace_load where workspace_id = $1 /*for update*/', [key.workspaceId]),
    statement('select lease_epoch, worker from conversations where id = $1 /*for update*/', [key.conversationId]),
    statement(
      `select id, workspace_id, task_id, reply_to, state, appended, suspended, asked, settled_epoch, outcome
       from messages where id = $1 /*for update*/`,
      [key.messageId],
    ),
  ])) as unknown as [unknown, HeldConversation[], HeldMessage[]]
  return { held, message }
}

interface Change {
  readonly message: HeldMessage
  readonly ended: Ended
  readonly next: Claim | undefined
}

function books({ key, unsent }: Settlement, { message, ended, next }: Change) {
  const items: Item[] = [...unseenItems(unsent, message.appended), ...ended.items]
  const own = { taskId: key.taskId, messageId: key.messageId, items }
  return {
    workspaceId: key.workspaceId,
    running: next === undefined && message.suspended === 0 ? -1 : 0,
    suspended: -message.suspended,
    waiting: ended.waiting - (next === undefined ? 0 : 1),
    entries: [...(items.length === 0 ? [] : [own]), ...(next === undefined ? [] : [next.entry])],
  }
}

function* keepLate(key: LeaseKey, outcome: Outcome): Transaction<void> {
  if (outcome.type !== 'done') return
  const entries = [
    { taskId: key.taskId, messageId: key.messageId, items: [{ t: 'late', parts: outcome.parts } as const] },
  ]
  yield* closeBooks({ workspaceId: key.workspaceId, running: 0, waiting: 0, entries })
}
