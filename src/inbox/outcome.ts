/** What each outcome of a turn does to its message and its task. Called inside the settle transaction only. */
import type { Part, TaskState } from '../protocol/a2a.ts'
import { sql, type Transaction } from '../store/store.ts'
import { endTask } from './dead.ts'
import { type Addressed, addDelivery } from './delivery-rows.ts'
import type { Item, Said, StoredReply } from './event-log.ts'
import type { Failure, LeaseKey, NumberedEvents, Outcome } from './inbox.ts'
import { voidQuestions } from './questions.ts'
import { setTaskState } from './tasks.ts'

/** Keeps the session that a turn left behind, or drops a lost one; injected, for sessions are another room's rows. */
export type KeepSession = (key: LeaseKey, token: string | undefined) => Transaction<void>

export interface Settlement {
  readonly key: LeaseKey
  readonly outcome: Outcome
  readonly unsent: NumberedEvents | undefined
  /** Whether that worker still takes work: then the freed slot's next conversation is its own. */
  readonly accepts: (workerId: string) => boolean
  readonly keepSession: KeepSession
}

export interface HeldMessage extends Addressed {
  state: string
  appended: number
  suspended: number
  asked: number
  settled_epoch: number | null
  outcome: string | null
}

export interface Ended {
  readonly items: readonly Item[]
  /** How the number of waiting messages changes: +1 when this one goes back, less those that ended with it. */
  readonly waiting: number
}

const FINALITY_STATES: Readonly<Record<(Outcome & { type: 'done' })['finality'], TaskState>> = {
  completed: 'TASK_STATE_COMPLETED',
  input_required: 'TASK_STATE_INPUT_REQUIRED',
  auth_required: 'TASK_STATE_AUTH_REQUIRED',
  rejected: 'TASK_STATE_REJECTED',
}

export function* recordOutcome({ key, outcome, keepSession }: Settlement, message: HeldMessage): Transaction<Ended> {
  const requeued = message.asked === 1 ? yield* closeQuestions(message, outcome) : 0
  // Cancel committed first: whatever the turn still said, the task stays cancelled.
  if (message.state === 'stopping') {
    yield* closeMessage(key, { state: 'canceled', outcome: outcome.type })
    return { items: [], waiting: 0 }
  }
  if (outcome.type === 'released' || outcome.type === 'stopped') {
    const interrupted = outcome.type === 'stopped' || outcome.interrupted
    yield* reopenMessage(key, { outcome: outcome.type, interrupted })
    return { items: [], waiting: 1 + requeued }
  }
  if (outcome.type === 'done') {
    if (outcome.session !== undefined) yield* keepSession(key, outcome.session)
    return yield* recordReply(key, message, outcome)
  }
  if (outcome.type === 'dead') return yield* recordDead(key, message, outcome.failure)
  if (outcome.reason === 'session_lost') yield* keepSession(key, undefined)
  const ended = yield* recordRetry(key, message, outcome)
  return { ...ended, waiting: ended.waiting + requeued }
}

/** A turn that runs again asks again: what was answered goes back into the queue. One that ended has no questions. */
function* closeQuestions(message: HeldMessage, outcome: Outcome): Transaction<number> {
  const again = message.state !== 'stopping' && outcome.type !== 'done' && outcome.type !== 'dead'
  if (again) return yield* voidQuestions(message.id)
  yield* sql(`update asks set state = 'void' where message_id = $1 and state = 'open'`, [message.id])
  return 0
}

function* recordReply(key: LeaseKey, message: HeldMessage, outcome: Outcome & { type: 'done' }): Transaction<Ended> {
  const { parts, artifacts, finality } = outcome
  const reply: StoredReply = { parts, artifacts }
  yield* closeMessage(key, { state: 'done', outcome: 'done', reply: JSON.stringify(reply) })
  const items: Item[] = [{ t: 'reply' }]
  // A task ends only when no other message of it is unsettled.
  const [open] = yield* sql('select 1 as open from messages where task_id = $1 and settled_at is null limit 1', [
    message.task_id,
  ])
  if (open === undefined) {
    const state = FINALITY_STATES[finality]
    const said: Said | undefined = finality === 'completed' ? undefined : { parts }
    yield* setTaskState(message.task_id, state, said)
    items.push({ t: 'status', state, ...said })
  }
  yield* addDelivery(message, { state: FINALITY_STATES[finality], parts })
  return { items, waiting: 0 }
}

type Retry = Outcome & { type: 'retry' }

function* recordRetry(key: LeaseKey, message: HeldMessage, outcome: Retry): Transaction<Ended> {
  const { failure, afterMs, interrupted, reason } = outcome
  yield* reopenMessage(key, {
    outcome: 'retry',
    afterMs,
    interrupted,
    failures: reason === 'failure' ? 1 : 0,
    sessionRetried: reason === 'session_lost',
  })
  const said = sayFailure(failure)
  yield* setTaskState(message.task_id, 'TASK_STATE_WORKING', said)
  return { items: [{ t: 'status', state: 'TASK_STATE_WORKING', ...said }], waiting: 1 }
}

function* recordDead(key: LeaseKey, message: HeldMessage, failure: Failure): Transaction<Ended> {
  const { ended, items } = yield* endTask(message.task_id, failure)
  yield* sql('update messages set settled_epoch = $2 where id = $1', [key.messageId, key.epoch])
  // This one was not waiting; the task's others were.
  return { items, waiting: 1 - ended }
}

const sayFailure = (failure: Failure): { parts: Part[]; code: string } => ({
  parts: [{ text: failure.message }],
  code: failure.code,
})

interface Closing {
  readonly state: 'done' | 'canceled'
  readonly outcome: Outcome['type']
  readonly reply?: string
}

function* closeMessage(key: LeaseKey, { state, outcome, reply }: Closing): Transaction<void> {
  yield* sql(
    `update messages set state = $2, outcome = $3, reply = $4, settled_at = now_ms(), settled_epoch = $5,
       suspended = 0 where id = $1`,
    [key.messageId, state, outcome, reply ?? null, key.epoch],
  )
}

interface Reopening {
  readonly outcome: Outcome['type']
  readonly interrupted: boolean
  readonly afterMs?: number
  readonly failures?: number
  readonly sessionRetried?: boolean
}

function* reopenMessage(key: LeaseKey, reopening: Reopening): Transaction<void> {
  const { outcome, interrupted, afterMs = 0, failures = 0, sessionRetried = false } = reopening
  yield* sql(
    `update messages set state = 'queued', suspended = 0, outcome = $2, settled_epoch = $3, failures = failures + $4,
       ready_at = case when $7 = 0 then ready_at else now_ms() + $7 end,
       interrupted = case when $5 = 1 then 1 else interrupted end,
       session_retried = case when $6 = 1 then 1 else session_retried end
     where id = $1`,
    [key.messageId, outcome, key.epoch, failures, interrupted ? 1 : 0, sessionRetried ? 1 : 0, afterMs],
  )
}
