/**
 * What running turns have to be told: that they are cancelled, and what was answered to their questions. Whoever says
 * it tells a worker of his own process at once; a worker elsewhere hears of it here, from the store, until it settles.
 */
import type { Part } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { Directive, LeaseKey } from '../inbox.ts'

const DIRECTIVES_MAX = 200

export interface WorkerDirective {
  readonly worker: string
  readonly directive: Directive
}

interface TurnRow {
  worker: string
  workspace_id: string
  conversation_id: string
  task_id: string
  message_id: string
  lease_epoch: number
}

interface AnswerRow extends TurnRow {
  ask_id: string
  ask_state: string
  /** The message that answers; null for a denial, and for a permission, which is given without a message. */
  envelope: string | null
}

const TURN = 'c.worker, c.lease_epoch, m.workspace_id, m.conversation_id, m.task_id, m.id as message_id'
// Both states stand there for the sake of the index of running messages: without it all messages would be read.
const RUNNING = `from messages m join conversations c on c.id = m.conversation_id`

export function* findDirectives(): Transaction<WorkerDirective[]> {
  const stopping = yield* sql<TurnRow>(
    `select ${TURN} ${RUNNING} where m.state in ('leased', 'stopping') and m.state = 'stopping' limit ${DIRECTIVES_MAX}`,
  )
  const answered = yield* sql<AnswerRow>(
    `select ${TURN}, a.id as ask_id, a.state as ask_state, o.envelope ${RUNNING}
     join asks a on a.message_id = m.id and a.epoch = c.lease_epoch and a.state in ('answered', 'denied')
     left join messages o on o.id = a.answer_message_id
     where m.state in ('leased', 'stopping') and m.state = 'leased' and m.asked = 1 limit ${DIRECTIVES_MAX}`,
  )
  return [
    ...stopping.map((row): WorkerDirective => ({ worker: row.worker, directive: { type: 'stop', key: keyOf(row) } })),
    ...answered.map((row): WorkerDirective => ({ worker: row.worker, directive: answerOf(row) })),
  ]
}

const answerOf = (row: AnswerRow): Directive => ({
  type: 'answer',
  key: keyOf(row),
  askId: row.ask_id,
  parts: row.ask_state === 'denied' ? undefined : partsOf(row.envelope),
})

const partsOf = (envelope: string | null): readonly Part[] =>
  envelope === null ? [] : restoreEnvelope(envelope).message.parts

const keyOf = (row: TurnRow): LeaseKey => ({
  workspaceId: row.workspace_id,
  conversationId: row.conversation_id,
  taskId: row.task_id,
  messageId: row.message_id,
  epoch: row.lease_epoch,
})
