/** Turns for tests of backends: everything a turn needs, of which a test names only what it is about. */
import type { BackendEvent, Turn } from '../../src/backends/backend.ts'
import { joinText, type Request, type RequestPart } from '../../src/protocol/request.ts'

let turns = 0

export interface TurnOverrides extends Partial<Omit<Turn, 'request'>> {
  /** The message's text; `parts` says it all where there is more. */
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

/** The deltas joined, and the chunks of artifacts: what a reader of the stream has seen. */
export function streamedText(events: readonly BackendEvent[]): string {
  return events
    .map((event) => {
      if (event.type === 'artifact') return event.artifact.parts.map((part) => part.text ?? '').join('')
      return event.type === 'text' ? event.delta : ''
    })
    .join('')
}
