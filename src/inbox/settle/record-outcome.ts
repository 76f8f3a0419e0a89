/** What each outcome of a turn does to its message and its task. Called inside the settle transaction only. */
import type { MessageContent, Part, TaskState } from '../../protocol/a2a.ts'
import { type Statement, statement, type Transaction } from '../../store/store.ts'
import { closeAsks, voidAsks } from '../ask/close-asks.ts'
import type { KeepSession } from '../context.ts'
import { type AddressedMessage, deliveryStatements } from '../deliver/delivery-rows.ts'
import type { LeaseKey, NumberedEvents, Outcome } from '../inbox.ts'
import type { LogItem, StoredReply } from '../read/event-log.ts'
import { setTaskState } from '../read/tasks.ts'
import { failTask } from './fail-task.ts'
import { type StatusMessage, statusMessageOf, withoutDetail } from './status-message.ts'
import type { TaskResult } from './task-result.ts'

export interface SettleInput {
  readonly key: LeaseKey
  readonly outcome: Outcome
  readonly unsent: NumberedEvents | undefined
  /** Whether that worker still takes work: then the freed slot's next conversation is its own. */
  readonly accepts: (workerId: string) => boolean
  readonly keepSession: KeepSession
}

/** What a settle has to know of its message, beside the key, which is known to fit: a bridge's was looked up first. */
export interface HeldMessage {
  n: number
  reply_to: string | null
  state: string
  appended: number
  suspended: number
  asked: number
  settled_epoch: number | null
  /** The task's other messages: null where there are none, else how many of them are unsettled. */
  others_open: number | null
  now: number
  outcome: string | null
}

export interface RecordedOutcome {
  /** It is to be run again; otherwise it has ended. */
  readonly again: boolean
  /** What records it, for the settle to run with its other writes. */
  readonly writes: readonly Statement[]
  readonly items: readonly LogItem[]
  /** How the number of waiting messages changes: +1 when this one goes back, less those that ended with it. */
  readonly waiting: number
  /** The task comes to rest with it, which is the settle's to write. */
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
  // Cancel committed first: whatever the turn still said, the task stays cancelled.
  if (message.state === 'stopping') {
    const closed = closeMessage(key, { state: 'canceled', outcome: outcome.type })
    return { again: false, writes: [closed], items: [], waiting: 0 }
  }
  if (outcome.type === 'released' || outcome.type === 'stopped') {
    const interrupted = outcome.type === 'stopped' || outcome.interrupted
    const parked = outcome.type === 'released' ? outcome.parked : undefined
    const { writes, items } = parked === undefined ? NO_STATUS : parkedStatus(key, parked.said)
    const reopened = reopenMessage(key, { outcome: outcome.type, interrupted, afterMs: parkMs(parked?.afterMs) })
    return { again: true, writes: [reopened, ...writes], items, waiting: 1 + requeued }
  }
  if (outcome.type === 'dead') return yield* recordDead(key, outcome)
  if (outcome.type === 'done') return recordReply(message, outcome, settlement)
  const lost = outcome.reason === 'session_lost' ? [keepSession(key, undefined)] : []
  const ended = recordRetry(key, outcome)
  return { ...ended, writes: [...lost, ...ended.writes], waiting: ended.waiting + requeued }
}

interface Ending {
  readonly message: HeldMessage
  readonly outcome: Outcome
}

/** A turn that runs again asks again: what was answered goes back into the queue. One that ended has no questions. */
function* endAsks({ messageId }: LeaseKey, { message, outcome }: Ending): Transaction<number> {
  const again = message.state !== 'stopping' && outcome.type !== 'done' && outcome.type !== 'dead'
  if (again) return yield* voidAsks(messageId)
  yield* closeAsks(messageId)
  return 0
}

/** Its worker looks again then; a bridge that says otherwise cannot hold a message back for days. */
const PARK_MS_MAX = 3600_000
const parkMs = (afterMs: number | undefined): number => Math.min(Math.max(0, Math.ceil(afterMs ?? 0)), PARK_MS_MAX)

const NO_STATUS = { writes: [], items: [] } as const

/** Why it waits, where whoever sent it looks. */
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
  const reply: StoredReply = { parts, artifacts, ...(metadata && { metadata }) }
  const state = FINALITY_STATES[finality]
  const status: StatusMessage | undefined =
    outcome.said ?? (finality === 'completed' || parts.length === 0 ? undefined : { parts })
  // A task ends only when no other message of it is unsettled.
  const last = (message.others_open ?? 0) === 0
  return {
    again: false,
    writes: [
      closeMessage(key, { state: 'done', outcome: 'done', reply: JSON.stringify(reply) }),
      ...(session === undefined ? [] : [keepSession(key, session)]),
      ...deliveryStatements(toAddressedMessage(key, message), { state, parts: wholeAnswer(outcome) }),
    ],
    items: [{ t: 'reply' }, ...(last ? [{ t: 'status', state, ...status } as const] : [])],
    waiting: 0,
    ...(last && { result: { state, reply, ...(status && { status }), atMs: message.now } }),
  }
}

/** The whole answer where only one message can be shown of it: a chat has no artifacts. */
function wholeAnswer({ parts, artifacts, said }: Done): readonly Part[] {
  if (parts.length > 0) return parts
  return [...artifacts.flatMap((artifact) => artifact.parts), ...(said?.parts ?? [])]
}

type Retry = Outcome & { type: 'retry' }

function recordRetry(key: LeaseKey, outcome: Retry): RecordedOutcome {
  const { failure, afterMs, interrupted, reason } = outcome
  const status = statusMessageOf(failure)
  const reopened = reopenMessage(key, {
    outcome: 'retry',
    afterMs,
    interrupted,
    failures: reason === 'failure' ? 1 : 0,
    sessionRetried: reason === 'session_lost',
  })
  return {
    again: true,
    writes: [reopened, setTaskState(key.taskId, 'TASK_STATE_WORKING', status)],
    items: [{ t: 'status', state: 'TASK_STATE_WORKING', ...withoutDetail(status) }],
    waiting: 1,
  }
}

type Dead = Outcome & { type: 'dead' }

function* recordDead(key: LeaseKey, { failure, artifacts = [] }: Dead): Transaction<RecordedOutcome> {
  const { ended, items } = yield* failTask(key.taskId, failure)
  const reply: StoredReply | null = artifacts.length > 0 ? { parts: [], artifacts } : null
  // The failure that ended it is one of its failures: a dead letter after four attempts shows four.
  const set = 'settled_epoch = $2, failures = failures + 1, reply = $3'
  const counted = statement(`update messages set ${set} where id = $1`, [
    key.messageId,
    key.epoch,
    reply && JSON.stringify(reply),
  ])
  // This one was not waiting; the task's others were.
  return { again: false, writes: [counted], items, waiting: 1 - ended }
}

interface Closing {
  readonly state: 'done' | 'canceled'
  readonly outcome: Outcome['type']
  readonly reply?: string
}

const closeMessage = (key: LeaseKey, { state, outcome, reply }: Closing): Statement =>
  statement(
    `update messages set state = $2, outcome = $3, reply = $4, settled_at = now_ms(), settled_epoch = $5,
       suspended = 0 where id = $1`,
    [key.messageId, state, outcome, reply ?? null, key.epoch],
  )

interface Reopening {
  readonly outcome: Outcome['type']
  readonly interrupted: boolean
  readonly afterMs?: number
  readonly failures?: number
  readonly sessionRetried?: boolean
}

function reopenMessage(key: LeaseKey, reopening: Reopening): Statement {
  const { outcome, interrupted, afterMs = 0, failures = 0, sessionRetried = false } = reopening
  const set = ["state = 'queued'", 'suspended = 0', 'outcome = $2', 'settled_epoch = $3', 'failures = failures + $4']
  if (afterMs > 0) set.push('ready_at = now_ms() + $5')
  else set.push('ready_at = ready_at + $5')
  if (interrupted) set.push('interrupted = 1')
  if (sessionRetried) set.push('session_retried = 1')
  const values = [key.messageId, outcome, key.epoch, failures, afterMs]
  return statement(`update messages set ${set.join(', ')} where id = $1`, values)
}
