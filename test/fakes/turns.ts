/** Turns for tests of backends, and readers of the events that a turn yields. A test names only the fields that matter. */
import assert from 'node:assert/strict'
import type { BackendEvent, Turn } from '../../src/backends/backend.ts'
import type { MoleculeError } from '../../src/errors.ts'
import { joinText, type Request, type RequestPart } from '../../src/protocol/request.ts'

let turns = 0

export interface TurnOverrides extends Partial<Omit<Turn, 'request'>> {
  /** The text of the message; `parts` replaces it when the message has more. */
  readonly text?: string
  readonly parts?: readonly RequestPart[]
  readonly request?: Partial<Request>
}

export function makeTurn({ text = '', parts = [{ type: 'text', text }], request, ...given }: TurnOverrides): Turn {
  turns += 1
  return {
    id: `turn_${process.pid}_${turns}`,
    messageId: `message_${turns}`,
    conversationId: `conversation_${turns}`,
    notes: {},
    prompt: joinText(parts),
    systemPrompt: '',
    workingDir: '/',
    mcpServers: [],
    ask: async () => 'denied',
    env: {},
    ...given,
    request: {
      workspace_id: 'ws_1',
      caller_id: '',
      message_id: `message_${turns}`,
      idempotency_key: `key_${turns}`,
      task_id: `task_${turns}`,
      context_id: 'context_1',
      parts,
      method: 'SendMessage',
      sender: { kind: 'person', id: 'people', name: 'Ada', door: 'http' },
      raw: { jsonrpc: '2.0', id: turns, method: 'SendMessage' },
      ...request,
    },
  }
}

/** All events of a stream, in order. */
export async function listEvents(stream: AsyncIterable<BackendEvent>): Promise<BackendEvent[]> {
  const events: BackendEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** The text that a reader of the stream has received: text deltas and artifact chunks. */
export function streamedText(events: readonly BackendEvent[]): string {
  return events
    .map((event) => {
      if (event.type === 'artifact') return event.artifact.parts.map((part) => part.text ?? '').join('')
      return event.type === 'text' ? event.delta : ''
    })
    .join('')
}

/** The text of the reply; fails when the turn failed. */
export function replyOf(events: readonly BackendEvent[]): string {
  const end = events.at(-1)
  assert.ok(end?.type === 'done', end?.type === 'failed' ? end.error.message : 'the turn has no end')
  return end.parts.map((part) => part.text ?? '').join('')
}

/** The error of the turn; fails when the turn succeeded. */
export function errorOf(events: readonly BackendEvent[]): MoleculeError {
  const end = events.at(-1)
  assert.ok(end?.type === 'failed', `the turn did not fail: ${JSON.stringify(end)}`)
  return end.error
}

/** The last session token of the turn. */
export function tokenOf(events: readonly BackendEvent[]): string {
  const session = events.findLast((event) => event.type === 'session')
  assert.ok(session !== undefined)
  return session.token
}
