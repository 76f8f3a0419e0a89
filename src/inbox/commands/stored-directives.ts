/**
 * Finds stop and answer directives for running turns. A worker in this process receives them directly; workers in other
 * processes read them here until the turn settles.
 */
import type { Part } from '../../protocol/a2a.ts'
import { restoreEnvelope } from '../../protocol/envelope.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { type AskState, inAskStates } from '../rows/ask.ts'
import { LEASE_COLUMNS, type LeaseRow, toLeaseKey } from '../rows/lease.ts'
import { IS_RUNNING, inStates } from '../rows/message.ts'
import type { Directive } from '../worker.ts'

/** Directives of each kind that one sweep sends; the next sweep sends the rest. */
const DIRECTIVES_MAX = 200

export interface WorkerDirective {
  readonly worker: string
  readonly directive: Directive
}

interface TurnRow extends LeaseRow {
  worker: string
}

interface AnswerRow extends TurnRow {
  ask_id: string
  ask_state: AskState
  /** The message that answers; null for a denial and for a permission, which is given without a message. */
  envelope: string | null
}

const RUNNING = 'from messages m join conversations c on c.id = m.conversation_id'

export function* findDirectives(): Transaction<WorkerDirective[]> {
  const stopping = yield* sql<TurnRow>(
    `select c.worker, ${LEASE_COLUMNS} ${RUNNING}
     where m.${IS_RUNNING} and m.${inStates('stopping')} limit ${DIRECTIVES_MAX}`,
  )
  const answered = yield* sql<AnswerRow>(
    `select c.worker, ${LEASE_COLUMNS}, a.id as ask_id, a.state as ask_state, o.envelope ${RUNNING}
     join asks a on a.message_id = m.id and a.epoch = c.lease_epoch and a.${inAskStates('answered', 'denied')}
     left join messages o on o.id = a.answer_message_id
     where m.${IS_RUNNING} and m.${inStates('leased')} and m.asked = 1 limit ${DIRECTIVES_MAX}`,
  )
  return [
    ...stopping.map((row) => ({ worker: row.worker, directive: { type: 'stop', key: toLeaseKey(row) } as const })),
    ...answered.map((row) => ({ worker: row.worker, directive: toAnswer(row) })),
  ]
}

const toAnswer = (row: AnswerRow): Directive => ({
  type: 'answer',
  key: toLeaseKey(row),
  askId: row.ask_id,
  parts: row.ask_state === 'denied' ? undefined : partsOf(row.envelope),
})

const partsOf = (envelope: string | null): readonly Part[] =>
  envelope === null ? [] : restoreEnvelope(envelope).message.parts
