/** Letters for tests of the inbox, as a door would hand them in. */
import type { Letter } from '../../src/inbox/reception.ts'
import { readEnvelope } from '../../src/protocol/envelope.ts'
import type { Sender } from '../../src/protocol/request.ts'

export const SENDER: Sender = { kind: 'person', id: 'admin', name: 'admin', door: 'http' }

let counter = 0

export interface LetterOptions {
  readonly text?: string
  readonly messageId?: string
  readonly contextId?: string
  readonly taskId?: string
  readonly principal?: string
  readonly idempotencyKey?: string
}

export function letterTo(workspaceId: string, options: LetterOptions = {}): Letter {
  counter += 1
  const { text = `hello ${counter}`, messageId = `message-${counter}`, principal = 'people' } = options
  const message = {
    messageId,
    role: 'ROLE_USER',
    parts: [{ text }],
    ...(options.contextId !== undefined && { contextId: options.contextId }),
    ...(options.taskId !== undefined && { taskId: options.taskId }),
  }
  const envelope = readEnvelope({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
  return {
    workspaceId,
    principal,
    sender: SENDER,
    envelope,
    ...(options.idempotencyKey !== undefined && { idempotencyKey: options.idempotencyKey }),
  }
}
