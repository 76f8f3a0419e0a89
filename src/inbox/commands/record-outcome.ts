/** What each outcome does to its message and its task. Runs inside the settle transaction only. */
import type { MessageContent, Part, TaskState } from '../../protocol/a2a.ts'
import { type StoredReply, writeReply } from '../../protocol/stored-reply.ts'
import { runStatement, type Statement, type Transaction } from '../../store/store.ts'
import { voidOpenAsks } from '../rows/ask.ts'
import { type AddressedMessage, deliveryStatements } from '../rows/delivery.ts'
import type { LogItem } from '../rows/log.ts'
import { finishMessage, type MessageState, releaseMessage, retryMessage, settleStopped } from '../rows/message.ts'
import { countFailure } from '../rows/message-updates.ts'
import { retryStatus, type StatusMessage, statusMessageOf, withoutDetail } from '../rows/status-message.ts'
import { setTaskState, type TaskResult } from '../rows/task.ts'
import type { LeaseKey, NumberedEvents, Outcome } from '../worker.ts'
import { voidAsks } from './ask.ts'
import { failTask } from './fail-task.ts'

/** Keeps the session token of a turn, or drops a lost one. Injected, because session rows belong to `src/workspaces`. */
export type KeepSession = (key: LeaseKey, token: string | undefined) => Statement

/** The same for a bridge, whose session tokens are valid on its own machine only. */
export type KeepSessionOn = (host: string) => KeepSession

export interface SettleInput {
  readonly key: LeaseKey
  readonly outcome: Outcome
  readonly unsent: NumberedEvents | undefined
  /** True when that worker takes more work: then it gets the next conversation for the free slot. */
  readonly accepts: (workerId: string) => boolean
  readonly keepSession: KeepSession
}

/** What a settle reads of its message. The key is known to match: the key of a bridge was checked before. */
export interface HeldMessage {
  n: number
  reply_to: string | null
  state: MessageState
  appended: number
  suspended: number
  asked: number
  settled_epoch: number | null
  /** How many other messages of the task are unsettled; null where the task has no other message. */
  others_open: number | null
  /** 1 for a delegated message whose end was not handled. */
  child_open: number | null
  /** 1 when a turn of the message delegated. */
  has_children: number | null
  now: number
  outcome: string | null
}

export interface RecordedOutcome {
  /** The message runs again; otherwise it has ended. */
  readonly again: boolean
  /** The settle runs these together with its other writes. */
  readonly writes: readonly Statement[]
  readonly items: readonly LogItem[]
  /** The change in the number of waiting messages: +1 when this one goes back, less those that ended with it. */
  readonly waiting: number
  /** The task's result where the task is final or interrupted now; the settle writes it. */
  readonly result?: TaskResult
}

const FINALITY_STATES: Readonly<Record<(Outcome & { type: 'done' })['finality'], TaskState>> = {
  completed: 'TASK_STATE_COMPLETED',
  input_required: 'TASK_STATE_INPUT_REQUIRED',
  auth_required: 'TASK_STATE_AUTH_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
}

export function* recordOutcome(settlement: SettleInput, message: HeldMessage): Transaction<RecordedOutcome> {
  const { key, outcome, keepSession } = settlement
  const requeued = message.asked === 1 ? yield* endAsks(key, { message, outcome }) : 0
  // The cancel committed first: the task stays cancelled, and the turn's outcome is dropped.
  if (message.state === 'stopping') {
    return { again: false, writes: [settleStopped(key, outcome.type)], items: [], waiting: 0 }
  }
  if (outcome.type === 'released' || outcome.type === 'stopped') {
    const interrupted = outcome.type === 'stopped' || outcome.interrupted
    const parked = outcome.type === 'released' ? outcome.parked : undefined
    const { writes, items } = parked === undefined ? NO_STATUS : parkedStatus(key, parked.said)
    const { waitsFor } = parked ?? {}
    const afterMs = parkMs(parked?.afterMs)
    const released = releaseMessage(key, { outcome: outcome.type, interrupted, afterMs, waitsFor })
    return { again: true, writes: [released, ...writes], items, waiting: 1 + requeued }
  }
  if (outcome.type === 'dead') return yield* recordDead(key, outcome)
  if (outcome.type === 'done') return recordReply(message, outcome, settlement)
  const lost = outcome.reason === 'session_lost' ? [keepSession(key, undefined)] : []
  const ended = recordRetry(key, outcome, message.now)
  return { ...ended, writes: [...lost, ...ended.writes], waiting: ended.waiting + requeued }
}

/** A turn that runs again asks again, so answers go back into the queue. Returns how many. */
function* endAsks(
  { messageId }: LeaseKey,
  { message, outcome }: { message: HeldMessage; outcome: Outcome },
): Transaction<number> {
  const again = message.state !== 'stopping' && outcome.type !== 'done' && outcome.type !== 'dead'
  if (again) return yield* voidAsks(messageId)
  yield* runStatement(voidOpenAsks(messageId))
  return 0
}

/** A longer park time is cut to this, so that a faulty bridge cannot hold a message back for days. */
const PARK_MS_MAX = 3600_000
const parkMs = (afterMs: number | undefined): number => Math.min(Math.max(0, Math.ceil(afterMs ?? 0)), PARK_MS_MAX)

const NO_STATUS = { writes: [], items: [] } as const

/** The task's status says why the message waits. */
function parkedStatus({ taskId }: LeaseKey, content: MessageContent): Pick<RecordedOutcome, 'writes' | 'items'> {
  const status: StatusMessage = { ...content, code: 'waiting' }
  const state = 'TASK_STATE_WORKING'
  return { writes: [setTaskState(taskId, state, status)], items: [{ t: 'status', state, ...status }] }
}

type Done = Outcome & { type: 'done' }

const toAddressedMessage = (
  { messageId, workspaceId, taskId }: LeaseKey,
  { reply_to }: HeldMessage,
): AddressedMessage => ({
  id: messageId,
  workspace_id: workspaceId,
  task_id: taskId,
  reply_to,
})

function recordReply(message: HeldMessage, outcome: Done, { key, keepSession }: SettleInput): RecordedOutcome {
  const { parts, artifacts, metadata, finality, session } = outcome
  const state = FINALITY_STATES[finality]
  const own = outcome.said ?? (finality === 'completed' || parts.length === 0 ? undefined : { parts })
  const reply: StoredReply = { parts, artifacts, ...(metadata && { metadata }), ...(own && { said: own }) }
  const status: StatusMessage | undefined = outcome.notice === undefined ? own : withNotice(own, outcome.notice)
  // The task is final only when no other message of it is unsettled.
  const last = (message.others_open ?? 0) === 0
  return {
    again: false,
    writes: [
      finishMessage(key, writeReply(reply)),
      ...(session === undefined ? [] : [keepSession(key, session)]),
      ...deliveryStatements(toAddressedMessage(key, message), { state, parts: wholeAnswer(outcome) }),
    ],
    items: [{ t: 'reply' }, ...(last ? [{ t: 'status', state, ...status } as const] : [])],
    waiting: 0,
    ...(last && { result: { state, reply, ...(status && { status }), atMs: message.now } }),
  }
}

function withNotice(status: StatusMessage | undefined, notice: string): StatusMessage {
  return { ...status, parts: [...(status?.parts ?? []), noticePart(notice, status?.parts)] }
}

/** Readers join the texts of a message, so the notice begins its own paragraph. */
const noticePart = (notice: string, before: readonly Part[] = []): Part => ({
  text: before.length === 0 ? notice : `\n\n${notice}`,
})

/** The answer as one message, for a chat, which has no artifacts. A text of the answer says all; its files come with it. */
function wholeAnswer({ parts, artifacts, said, notice }: Done): readonly Part[] {
  const made = artifacts.flatMap((each) => each.parts)
  const files = made.filter(({ raw, url }) => raw !== undefined || url !== undefined)
  const answer = parts.length > 0 ? [...parts, ...files] : [...made, ...(said?.parts ?? [])]
  return notice === undefined ? answer : [...answer, noticePart(notice, answer)]
}

type Retry = Outcome & { type: 'retry' }

function recordRetry(key: LeaseKey, outcome: Retry, nowMs: number): RecordedOutcome {
  const { failure, afterMs, interrupted, reason, parked = false } = outcome
  const status = retryStatus(statusMessageOf(failure), { parked, afterMs, nowMs })
  const sessionLost = reason === 'session_lost'
  const retried = retryMessage(key, { afterMs, interrupted, sessionLost, parked })
  return {
    again: true,
    writes: [retried, setTaskState(key.taskId, 'TASK_STATE_WORKING', status)],
    items: [{ t: 'status', state: 'TASK_STATE_WORKING', ...withoutDetail(status) }],
    waiting: 1,
  }
}

type Dead = Outcome & { type: 'dead' }

function* recordDead(key: LeaseKey, { failure, artifacts = [] }: Dead): Transaction<RecordedOutcome> {
  const { ended, items } = yield* failTask(key.taskId, failure)
  const reply: StoredReply | null = artifacts.length > 0 ? { parts: [], artifacts } : null
  // Count this failure too: a dead letter after four attempts shows four.
  const counted = countFailure(key, reply && writeReply(reply))
  // This message did not wait; the other messages of its task did.
  return { again: false, writes: [counted], items, waiting: 1 - ended }
}
