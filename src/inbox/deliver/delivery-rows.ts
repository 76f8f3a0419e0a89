/**
 * What has to be pushed out, as rows: written in the transaction that decides it, so that a reply and the duty to
 * deliver it are stored together or not at all.
 */
import { ulid } from '../../ids.ts'
import { type Statement, statement } from '../../store/store.ts'
import type { DeliveryBody, ReplyAddress } from '../delivery.ts'

export interface AddressedMessage {
  readonly id: string
  readonly workspace_id: string
  readonly task_id: string
  /** JSON of a ReplyAddress, or null when whoever asked waits by itself. */
  readonly reply_to: string | null
}

/** The duty to tell whoever sent this message, if it said where. */
export function deliveryStatements(message: AddressedMessage, body: DeliveryBody): Statement[] {
  if (message.reply_to === null) return []
  const { door, channel } = JSON.parse(message.reply_to) as ReplyAddress
  const row = statement(
    `insert into deliveries (id, workspace_id, task_id, message_id, door, channel, body, state, next_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, 'pending', now_ms(), now_ms())`,
    [ulid(), message.workspace_id, message.task_id, message.id, door, channel, JSON.stringify(body)],
  )
  return [row]
}
