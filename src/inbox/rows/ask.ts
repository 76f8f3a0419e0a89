/**
 * The states of an ask. An ask is open while its turn waits; `answered` and `denied` are decisions for that turn. It is void
 * once its attempt is over, because the next attempt asks again.
 */
import { type Statement, statement } from '../../store/store.ts'
import type { Answerer, AskDecision } from '../owners.ts'
import { type Ask, type LeaseKey, leaseId } from '../worker.ts'
import { type States, stateCondition } from './state-condition.ts'

export type AskState = 'open' | 'answered' | 'denied' | 'void'

/** For a query on asks: `a.${inAskStates('open')}`. */
export const inAskStates = (...states: States<AskState>): string => stateCondition(states)

export const askStateOf = (decision: AskDecision): AskState => (decision === 'allowed' ? 'answered' : 'denied')

const ASK_TIMEOUT_MS = 30 * 60_000

/** The key of one ask. It stays unique, because no epoch is used twice. */
export interface AskKey {
  readonly messageId: string
  readonly epoch: number
  readonly id: string
}

/** `<message>.<epoch>.<ask>`, as owners see it: the whole key, so that no answer can reach another ask. */
export const askIdOf = (key: AskKey): string => `${leaseId(key)}.${key.id}`

/** Undefined where the text is no such id. */
export function parseAskId(text: string): AskKey | undefined {
  const [, messageId, epoch, id] = /^([^.]{1,64})\.(\d{1,15})\.(.{1,128})$/s.exec(text) ?? []
  return messageId && epoch && id ? { messageId, epoch: Number(epoch), id } : undefined
}

const move = (to: AskState, from: AskState, set = ''): string =>
  `update asks set state = '${to}'${set} where ${inAskStates(from)} and`

export function insertAsk(key: LeaseKey, ask: Ask): Statement {
  const { tool = null, subject = null } = ask.kind === 'permission' ? ask : {}
  return statement(
    `insert into asks (message_id, id, workspace_id, task_id, epoch, state, question, tool, subject, asked_at, expires_at)
     values ($1, $2, $3, $4, $5, 'open', $6, $7, $8, now_ms(), now_ms() + $9)`,
    [
      ...[key.messageId, ask.id, key.workspaceId, key.taskId, key.epoch],
      ...[JSON.stringify(ask.parts), tool, subject, ask.timeoutMs ?? ASK_TIMEOUT_MS],
    ],
  )
}

/** The question is answered by a message of its task. */
export const answerQuestion = ({ messageId, id }: Omit<AskKey, 'epoch'>, answerMessageId: string): Statement =>
  statement(`${move('answered', 'open', ', answer_message_id = $3')} message_id = $1 and id = $2`, [
    ...[messageId, id, answerMessageId],
  ])

/** A person, a rule or the timeout decides. Returns the id, and no row when the ask was closed before. */
export function decideAsk({ messageId, epoch, id }: AskKey, decision: AskDecision, answerer?: Answerer): Statement {
  const { name = null, principal = null, door = null } = answerer ?? {}
  const set = ', answered_by = $4, answered_principal = $5, answered_door = $6, answered_at = now_ms()'
  const text = `${move(askStateOf(decision), 'open', set)} message_id = $1 and epoch = $2 and id = $3 returning id`
  return statement(text, [messageId, epoch, id, name, principal, door])
}

/** The message has ended: open asks are void, and answers are used up. */
export const voidOpenAsks = (messageId: string): Statement =>
  statement(`${move('void', 'open')} message_id = $1`, [messageId])

/** The same for a workspace that is deleted. */
export const voidOpenAsksOf = (workspaceId: string): Statement =>
  statement(`${move('void', 'open')} workspace_id = $1`, [workspaceId])

/** The answers that the turns of this message got count no more. */
export const voidAnswers = (messageId: string): Statement =>
  statement(`${move('void', 'answered')} message_id = $1`, [messageId])
