/**
 * Settling: one transaction closes a lease with its outcome, so that a crash after it never runs the agent again.
 * The freed slot goes to the oldest ready conversation in the same transaction. Fenced by the epoch: a result that
 * comes after a takeover is kept in the log and is never a second reply.
 */
import { statement, type Transaction, together } from '../../store/store.ts'
import type { LeaseKey, Outcome } from '../inbox.ts'
import { type Claim, claimHead, type HeadRow, type NextClaim, selectOldest } from '../lease/claim.ts'
import { freeConversation } from '../lease/conversation-readiness.ts'
import { type LogItem, recordChange } from '../read/event-log.ts'
import { laterMessagesOfTask, messagesOfTask } from '../read/task-messages.ts'
import { setTaskResult } from '../read/tasks.ts'
import { usageRows } from '../read/usage.ts'
import { unseenItems } from './append.ts'
import { type HeldMessage, type RecordedOutcome, recordOutcome, type SettleInput } from './record-outcome.ts'
import type { TaskResult } from './task-result.ts'

export interface SettleOutput {
  readonly answer: 'settled' | 'stale'
  /** What the freed slot went to. */
  readonly next: NextClaim | undefined
  /** How the task came to rest with it, where this message is all there is of the task. */
  readonly result?: TaskResult
}

export function* settle(settlement: SettleInput): Transaction<SettleOutput> {
  const { key, outcome } = settlement
  const { held, message } = yield* openLease(key)
  if (held === undefined || message === undefined) return { answer: 'stale', next: undefined }
  // The answer to an earlier settle was lost and the worker asks again: the same word changes nothing.
  if (message.settled_epoch === key.epoch) {
    return { answer: message.outcome === outcome.type ? 'settled' : 'stale', next: undefined }
  }
  const running = message.state === 'leased' || message.state === 'stopping'
  if (held.lease_epoch !== key.epoch || !running) {
    yield* logLateResult(key, outcome)
    return { answer: 'stale', next: undefined }
  }
  const ended = yield* recordOutcome(settlement, message)
  // Others have seen more of the task than this message.
  const alone = message.others_open === null && ended.result !== undefined ? { result: ended.result } : {}
  const resultWrites = ended.result === undefined ? [] : [setTaskResult(key.taskId, ended.result)]
  const free = freeConversation(key.conversationId, ended.again ? undefined : message.n)
  const freed = [...ended.writes, ...resultWrites, ...usageRows(key, outcome), free]
  // A suspended turn has no slot to hand on, one over the limit is given up, and nobody may be there to take it.
  const slot = message.suspended === 0 && held.running <= held.slots && held.waiting + ended.waiting > 0
  const passesSlot = slot && held.worker !== null && settlement.accepts(held.worker)
  const worker = passesSlot ? (held.worker as string) : undefined
  if (worker === undefined) {
    yield* together([...freed, ...recordChange(settleChange(settlement, { message, ended, next: undefined }))])
    return { answer: 'settled', next: undefined, ...alone }
  }
  const answers = yield* together([...freed, selectOldest(key.workspaceId)])
  const [head] = answers.at(-1) as unknown as HeadRow[]
  const claim = head === undefined ? undefined : claimHead(key.workspaceId, head, { worker, hosted: held.hosted === 1 })
  yield* together([
    ...(claim?.writes ?? []),
    ...recordChange(settleChange(settlement, { message, ended, next: claim })),
  ])
  return { answer: 'settled', next: claim && { worker, claim }, ...alone }
}

interface HeldLease {
  hosted: number
  slots: number
  running: number
  waiting: number
  lease_epoch: number
  worker: string | null
}

interface OpenLease {
  readonly held: HeldLease | undefined
  readonly message: HeldMessage | undefined
}

const messageWith = (others: string): string =>
  `select m.n, m.reply_to, m.state, m.appended, m.suspended, m.asked, m.settled_epoch, m.outcome, now_ms() as now,
     (select sum(case when o.settled_at is null then 1 else 0 end) from messages o where ${others}) as others_open
   from messages m where m.id = $1 /*for update*/`
/** The message that opened its task, and one that came later. */
const OPENING = messageWith(laterMessagesOfTask('o', '$1'))
const LATER = messageWith(`${messagesOfTask('o', '$2')} and o.id <> $1`)

/** Locked in the order that every transaction keeps (load, conversation, message), or two nodes would deadlock. */
function* openLease(key: LeaseKey): Transaction<OpenLease> {
  const [[held], [message]] = (yield* together([
    statement(
      `select l.hosted, l.slots, l.running, l.waiting, c.lease_epoch, c.worker from workspace_load l
       join conversations c on c.workspace_id = l.workspace_id
       where l.workspace_id = $1 and c.id = $2 /*for update*/`,
      [key.workspaceId, key.conversationId],
    ),
    key.messageId === key.taskId ? statement(OPENING, [key.messageId]) : statement(LATER, [key.messageId, key.taskId]),
  ])) as unknown as [HeldLease[], HeldMessage[]]
  return { held, message }
}

interface Change {
  readonly message: HeldMessage
  readonly ended: RecordedOutcome
  readonly next: Claim | undefined
}

function settleChange({ key, unsent }: SettleInput, { message, ended, next }: Change) {
  const items: LogItem[] = [...unseenItems(unsent, message.appended), ...ended.items]
  const own = { taskId: key.taskId, messageId: key.messageId, items }
  return {
    workspaceId: key.workspaceId,
    running: next === undefined && message.suspended === 0 ? -1 : 0,
    suspended: -message.suspended,
    waiting: ended.waiting - (next === undefined ? 0 : 1),
    entries: [...(items.length === 0 ? [] : [own]), ...(next === undefined ? [] : [next.entry])],
  }
}

function* logLateResult(key: LeaseKey, outcome: Outcome): Transaction<void> {
  if (outcome.type !== 'done') return
  const entries = [
    { taskId: key.taskId, messageId: key.messageId, items: [{ t: 'late', parts: outcome.parts } as const] },
  ]
  yield* together(recordChange({ workspaceId: key.workspaceId, entries }))
}
