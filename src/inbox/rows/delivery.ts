/**
 * Deliveries as rows, written in the transaction that decides the task's state: a reply and its delivery are stored
 * together or not at all.
 */
import { ulid } from '../../ids.ts'
import { isNoReply } from '../../no-reply.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { DeliveryBody, ReplyAddress } from '../delivery.ts'

export interface AddressedMessage {
  readonly id: string
  readonly workspace_id: string
  readonly task_id: string
  /** JSON of a ReplyAddress; null when the sender gave no address. */
  readonly reply_to: string | null
}

/** The delivery to the sender of this message, if it gave a reply address. */
export function deliveryStatements(message: AddressedMessage, body: DeliveryBody): Statement[] {
  if (message.reply_to === null) return []
  const { door, channel, mayBeSilent = false } = JSON.parse(message.reply_to) as ReplyAddress
  const isSilent = mayBeSilent && body.state === 'TASK_STATE_COMPLETED' && isNoReply(body.parts)
  const values = [ulid(), message.workspace_id, message.task_id, message.id, door, channel, JSON.stringify(body)]
  return [statement(isSilent ? INSERT_SILENT : INSERT_PENDING, values)]
}

const insertAs = (state: string, finishedAt: string): string =>
  `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, next_at, created_at,
     finished_at) values ($1, $2, $3, $4, $5, $6, $7, '${state}', now_ms(), now_ms(), ${finishedAt})`

const INSERT_PENDING = insertAs('pending', 'null')
/** The story of the message shows it; nothing is sent. */
const INSERT_SILENT = insertAs('silent', 'now_ms()')
