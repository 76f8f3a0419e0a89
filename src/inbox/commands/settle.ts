/**
 * Settling: one transaction closes a lease with its outcome, so a crash after it never runs the agent again. The same
 * transaction gives the free slot to the oldest ready conversation. The epoch is the fence: a result that comes after a
 * takeover is kept in the log and never becomes a second reply.
 */
import { statement, type Transaction, together } from '../../store/store.ts'
import { freeConversation } from '../rows/conversation.ts'
import { type LogItem, recordChange } from '../rows/log.ts'
import { isRunning } from '../rows/message.ts'
import { setTaskResult, type TaskResult } from '../rows/task.ts'
import { laterMessagesOfTask, messagesOfTask } from '../rows/task-messages.ts'
import { usageRows } from '../rows/turn-usage.ts'
import type { LeaseKey, Outcome } from '../worker.ts'
import { unseenItems } from './append.ts'
import { type Claim, claimHead, type HeadRow, type NextClaim, selectOldest } from './claim.ts'
import { type HeldMessage, type RecordedOutcome, recordOutcome, type SettleInput } from './record-outcome.ts'

export interface SettleOutput {
  readonly answer: 'settled' | 'stale'
  /** The claim that got the free slot. */
  readonly next: NextClaim | undefined
  /** The task's result, where this message is the only one of the task. */
  readonly result?: TaskResult | undefined
  /** The outcome goes to a chat: its door must be woken. */
  readonly delivers?: boolean
  /** A delegated message has ended, or one that delegated or may have delegated: its relatives must be looked after. */
  readonly endsDelegation?: boolean
}

export function* settle(settlement: SettleInput): Transaction<SettleOutput> {
  const { key, outcome } = settlement
  const { held, message } = yield* lockLease(key)
  if (held === undefined || message === undefined) return { answer: 'stale', next: undefined }
  // A worker whose answer was lost repeats its settle: the same outcome changes nothing.
  if (message.settled_epoch === key.epoch) {
    return { answer: message.outcome === outcome.type ? 'settled' : 'stale', next: undefined }
  }
  if (held.lease_epoch !== key.epoch || !isRunning(message.state)) {
    yield* logLateResult(key, outcome)
    return { answer: 'stale', next: undefined }
  }
  const ended = yield* recordOutcome(settlement, message)
  // With other messages, the result alone would hide part of the task: waiting callers read the store instead.
  const result = message.others_open === null ? ended.result : undefined
  const hasRelatives = message.child_open === 1 || message.has_children === 1 || outcome.type === 'dead'
  const endsDelegation = !ended.again && hasRelatives
  const delivers = !ended.again && (message.reply_to !== null || outcome.type === 'dead')
  const resultWrites = ended.result === undefined ? [] : [setTaskResult(key.taskId, ended.result)]
  const free = freeConversation(key.conversationId, ended.again ? undefined : message.n)
  const freed = [...ended.writes, ...resultWrites, ...usageRows(key, outcome), free]
  // A suspended turn has no slot to pass on, and a slot over the limit is given up.
  const passesSlot = message.suspended === 0 && held.running <= held.slots && held.waiting + ended.waiting > 0
  const { worker } = held
  if (!passesSlot || worker === null || !settlement.accepts(worker)) {
    yield* together([...freed, ...recordChange(settleChange(settlement, { message, ended, next: undefined }))])
    return { answer: 'settled', next: undefined, result, delivers, endsDelegation }
  }
  const answers = yield* together([...freed, selectOldest(key.workspaceId)])
  const [head] = answers.at(-1) as unknown as HeadRow[]
  const claim = head === undefined ? undefined : claimHead(key.workspaceId, head, { worker, hosted: held.hosted === 1 })
  yield* together([
    ...(claim?.writes ?? []),
    ...recordChange(settleChange(settlement, { message, ended, next: claim })),
  ])
  return { answer: 'settled', next: claim && { worker, claim }, result, delivers, endsDelegation }
}

interface HeldLease {
  hosted: number
  slots: number
  running: number
  waiting: number
  lease_epoch: number
  worker: string | null
}

const messageWith = (others: string): string =>
  `select m.n, m.reply_to, m.state, m.appended, m.suspended, m.asked, m.settled_epoch, m.outcome, m.child_open,
     m.has_children, now_ms() as now,
     (select sum(case when o.settled_at is null then 1 else 0 end) from messages o where ${others}) as others_open
   from messages m where m.id = $1 /*for update*/`
/** For the message that opened its task, and for a later one. */
const OPENING = messageWith(laterMessagesOfTask('o', '$1'))
const LATER = messageWith(`${messagesOfTask('o', '$2')} and o.id <> $1`)

/** Two nodes would deadlock with another lock order: every transaction locks load, then conversation, then message. */
function* lockLease(key: LeaseKey): Transaction<{ held: HeldLease | undefined; message: HeldMessage | undefined }> {
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

function settleChange(
  { key, unsent }: SettleInput,
  { message, ended, next }: { message: HeldMessage; ended: RecordedOutcome; next: Claim | undefined },
) {
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
