/**
 * A turn as one answer: runs a backend's stream to its end and gives the reply in the seed's form, or throws what
 * failed. For callers that want no progress; text deltas are passed over, because `done` carries the whole reply, and
 * artifacts come before it, whole.
 */
import { MoleculeError } from '../errors.ts'
import type { Artifact } from '../protocol/a2a.ts'
import { mergeArtifact } from '../protocol/merge-artifact.ts'
import { toRequestPart } from '../protocol/part.ts'
import { type Response, textResponse } from '../protocol/request.ts'
import type { BackendEvent } from './backend.ts'

export async function collectResponse(events: AsyncIterable<BackendEvent>): Promise<Response> {
  let artifacts: readonly Artifact[] = []
  for await (const event of events) {
    if (event.type === 'artifact') artifacts = mergeArtifact(artifacts, event)
    if (event.type === 'failed') throw event.error
    if (event.type !== 'done') continue
    const parts = [...artifacts.flatMap((artifact) => artifact.parts), ...event.parts]
    // A response has at least one part: a backend that had nothing to say said the empty text.
    return parts.length === 0 ? textResponse('') : { parts: parts.map(toRequestPart), final: true }
  }
  throw new MoleculeError('no_end', 'the backend ended without saying how', { retryable: true })
}
