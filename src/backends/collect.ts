/**
 * A turn as one answer: runs a backend's stream to its end and gives the reply in the seed's form, or throws what
 * failed. For callers that want no progress; text deltas are passed over, because `done` carries the whole reply.
 */
import { MoleculeError } from '../errors.ts'
import { toRequestPart } from '../protocol/part.ts'
import { type Response, textResponse } from '../protocol/request.ts'
import type { BackendEvent } from './backend.ts'

export async function collect(events: AsyncIterable<BackendEvent>): Promise<Response> {
  for await (const event of events) {
    if (event.type === 'failed') throw event.error
    if (event.type !== 'done') continue
    // A response has at least one part: a backend that had nothing to say said the empty text.
    return event.parts.length === 0 ? textResponse('') : { parts: event.parts.map(toRequestPart), final: true }
  }
  throw new MoleculeError('no_end', 'the backend ended without saying how', { retryable: true })
}
