/**
 * Asks: questions and permissions that a running turn puts to a person. An ask suspends the turn. A question sets the
 * task to input-required; the next message to the task is the answer and goes to the waiting worker, not into the
 * queue. A permission sets auth-required and is answered by owners only (`answer-ask.ts`), so that a sender cannot
 * allow what its agent does. A permission that a rule covers is allowed at once. After the timeout an ask is denied. If
 * the worker dies the ask is void, and an answer that came waits in the queue behind the re-run.
 */
import type { Part, TaskState } from '../../protocol/a2a.ts'
import { runStatement, sql, type Transaction, together } from '../../store/store.ts'
import type { Answerer, AskDecision, Rule } from '../owners.ts'
import {
  type AskKey,
  type AskState,
  answerQuestion,
  decideAsk,
  inAskStates,
  insertAsk,
  voidAnswers,
  voidOpenAsks,
} from '../rows/ask.ts'
import { LEASE_COLUMNS, type LeaseRow, toLeaseKey } from '../rows/lease.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { type LogItem, recordChange } from '../rows/log.ts'
import { inStates, requeueAnswers } from '../rows/message.ts'
import { markAsked } from '../rows/message-updates.ts'
import { setTaskState } from '../rows/task.ts'
import { answererOfRule, useRule } from '../rules/rules.ts'
import type { Ask, LeaseKey, LeaseStanding } from '../worker.ts'
import type { WorkerDirective } from './stored-directives.ts'
import { lockHeldTurn, type SuspendOutput, suspend, takeSlotBack } from './suspend.ts'

/** Asks denied in one sweep; the next sweep denies the rest. */
const EXPIRED_MAX = 100

export interface AskOutput extends SuspendOutput {
  /** A rule has allowed it, and the turn does not wait: the answer for its worker. */
  readonly answered?: WorkerDirective
}

export function* ask(key: LeaseKey, given: Ask, accepts: (id: string) => boolean): Transaction<AskOutput> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return { answer: 'stale', next: undefined }
  if (message.state === 'stopping') return { answer: 'stop', next: undefined }
  const earlier = yield* sql<{ id: string; state: AskState }>(
    'select id, state from asks where message_id = $1 and epoch = $2',
    [key.messageId, key.epoch],
  )
  // A worker whose answer was lost repeats its call: the person must not see the ask twice.
  if (earlier.some(({ id }) => id === given.id)) return { answer: 'held', next: undefined }
  // The next message of the task is the answer. With two open asks it would be unclear to which.
  if (earlier.some((one) => one.state === 'open')) return { answer: 'refused', next: undefined }
  const rule = given.kind === 'permission' ? yield* useRule(key.workspaceId, given) : undefined
  if (rule !== undefined) {
    yield* storeAsk(key, given)
    yield* allowByRule(key, given.id, rule)
    const directive = { type: 'answer', key, askId: given.id, parts: [] } as const
    return { answer: 'held', next: undefined, answered: { worker: message.worker, directive } }
  }
  const suspended = yield* suspend(key, accepts)
  if (suspended.answer !== 'held') return suspended
  yield* storeAsk(key, given)
  const state = given.kind === 'permission' ? 'TASK_STATE_AUTH_REQUIRED' : 'TASK_STATE_INPUT_REQUIRED'
  yield* setAskStatus(key, { state, parts: given.parts })
  return suspended
}

function* storeAsk(key: LeaseKey, given: Ask): Transaction<void> {
  yield* together([insertAsk(key, given), markAsked(key.messageId)])
}

/** The turn did not wait: its task and its slot stay as they are. */
function* allowByRule(key: LeaseKey, id: string, rule: Rule): Transaction<void> {
  const answerer = answererOfRule(rule)
  yield* markAnswered({ ...key, id }, { decision: 'allowed', answerer })
  const { tool, pattern } = rule
  const items: LogItem[] = [{ t: 'permission', decision: 'allowed', tool, answerer, pattern }]
  const entries = [{ taskId: key.taskId, messageId: key.messageId, items }]
  yield* together(recordChange({ workspaceId: key.workspaceId, entries }))
}

/** An ask whose turn still waits for the answer. */
export interface OpenAsk {
  readonly id: string
  readonly kind: Ask['kind']
  /** Of a permission. */
  readonly tool?: string
  readonly subject?: string
  readonly key: LeaseKey
  readonly worker: string
}

interface OpenAskRow extends LeaseRow {
  id: string
  tool: string | null
  subject: string | null
  worker: string
}

const SELECT_OPEN = `select a.id, a.tool, a.subject, c.worker, ${LEASE_COLUMNS}
  from asks a join messages m on m.id = a.message_id join conversations c on c.id = m.conversation_id
  where a.${inAskStates('open')} and c.lease_epoch = a.epoch and m.${inStates('leased')}`

export function* openAskOf(taskId: string): Transaction<OpenAsk | undefined> {
  const [row] = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.task_id = $1`, [taskId])
  return row === undefined ? undefined : toOpenAsk(row)
}

export function* findOpenAsk({ messageId, epoch, id }: AskKey): Transaction<OpenAsk | undefined> {
  const [row] = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.message_id = $1 and a.epoch = $2 and a.id = $3`, [
    messageId,
    epoch,
    id,
  ])
  return row === undefined ? undefined : toOpenAsk(row)
}

/** The open permissions of a workspace for one tool. There are few: each is a waiting turn. */
export function* findOpenAsksFor(workspaceId: string, tool: string): Transaction<OpenAsk[]> {
  const rows = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.workspace_id = $1 and a.tool = $2`, [workspaceId, tool])
  return rows.map(toOpenAsk)
}

export function* findTimedOutAsks(): Transaction<OpenAsk[]> {
  const rows = yield* sql<OpenAskRow>(`${SELECT_OPEN} and a.expires_at < now_ms() limit ${EXPIRED_MAX}`)
  return rows.map(toOpenAsk)
}

const toOpenAsk = (row: OpenAskRow): OpenAsk => ({
  id: row.id,
  kind: row.tool === null ? 'question' : 'permission',
  ...(row.tool !== null && { tool: row.tool, subject: row.subject ?? '' }),
  worker: row.worker,
  key: toLeaseKey(row),
})

/** Closes the question with the message that answers it; the turn goes on. */
export function* answerAsk(open: OpenAsk, answerMessageId: string): Transaction<void> {
  yield* runStatement(answerQuestion({ messageId: open.key.messageId, id: open.id }, answerMessageId))
  yield* resumeTurn(open.key)
}

/** The ask timed out: the turn goes on with a denial. False when an answer came first. */
export function* denyAsk(open: OpenAsk): Transaction<boolean> {
  yield* together([lockWorkspace(open.key.workspaceId)])
  return yield* closeAsk(open, { decision: 'denied' })
}

interface AskAnswer {
  readonly decision: AskDecision
  readonly answerer?: Answerer
  /** The rule that allowed it. */
  readonly rule?: Rule
}

/**
 * Closes the ask, once, and resumes its turn. Without an answerer it timed out. False when the ask was closed before. The
 * caller has locked the workspace.
 */
export function* closeAsk({ key, id, tool }: OpenAsk, answer: AskAnswer): Transaction<boolean> {
  if (!(yield* markAnswered({ ...key, id }, answer))) return false
  const { decision, answerer, rule } = answer
  const by = { answerer, ...(rule && { pattern: rule.pattern }) }
  yield* resumeTurn(key, tool === undefined ? [] : [{ t: 'permission', decision, tool, ...by }])
  return true
}

/** False when the ask was closed before. */
function* markAnswered(key: AskKey, { decision, answerer }: AskAnswer): Transaction<boolean> {
  return (yield* runStatement(decideAsk(key, decision, answerer))).length > 0
}

/**
 * The message runs again, and its next attempt asks again. Open asks are void; answers go back into the queue, because
 * an answer is used up only when its turn settles. Returns how many answers wait again.
 */
export function* voidAsks(messageId: string): Transaction<number> {
  yield* runStatement(voidOpenAsks(messageId))
  const answers = yield* runStatement(requeueAnswers(messageId))
  yield* runStatement(voidAnswers(messageId))
  return answers.length
}

function* resumeTurn(key: LeaseKey, decided: readonly LogItem[] = []): Transaction<LeaseStanding> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return 'stale'
  yield* takeSlotBack(key, message)
  yield* setAskStatus(key, { state: 'TASK_STATE_WORKING', decided })
  return 'held'
}

function* setAskStatus(
  key: LeaseKey,
  {
    state,
    parts,
    decided = [],
  }: { readonly state: TaskState; readonly parts?: readonly Part[]; readonly decided?: readonly LogItem[] },
): Transaction<void> {
  const status = parts === undefined ? undefined : { parts }
  const items: LogItem[] = [...decided, { t: 'status', state, ...status }]
  const entries = [{ taskId: key.taskId, messageId: key.messageId, items }]
  yield* together([setTaskState(key.taskId, state, status), ...recordChange({ workspaceId: key.workspaceId, entries })])
}
