/** Letters for tests of the inbox, as a door would hand them in, and the leases of their messages. */
import type { Letter } from '../../src/inbox/reception.ts'
import type { Lease } from '../../src/inbox/worker.ts'
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

/** The lease of a message that is tried for the first time, as a worker receives it. */
export function leaseOf(more: Partial<Lease> = {}): Lease {
  const { workspaceId = 'ws_1' } = more
  const keys = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1, contextId: 'x', idempotencyKey: 'k' }
  const first = { failures: 0, losses: 0, interrupted: false, sessionRetried: false }
  return { ...letterTo(workspaceId), ...keys, ...first, ...more }
}
