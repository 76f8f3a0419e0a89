/**
 * A turn as one answer: reads a backend's stream to its end and returns the reply as a Response, or throws the error of
 * the turn. For callers that want no progress. It ignores text deltas, because `done` carries the whole reply; the parts
 * of artifacts come before the reply.
 */
import { type ErrorCode, MoleculeError, toMoleculeError } from '../errors.ts'
import type { Artifact } from '../protocol/a2a.ts'
import { mergeArtifact } from '../protocol/merge-artifact.ts'
import { toRequestPart } from '../protocol/part.ts'
import { joinText, type Response, textResponse } from '../protocol/request.ts'
import type { BackendEvent } from './backend.ts'

export async function collectResponse(events: AsyncIterable<BackendEvent>): Promise<Response> {
  let artifacts: readonly Artifact[] = []
  for await (const event of events) {
    if (event.type === 'artifact') artifacts = mergeArtifact(artifacts, event)
    if (event.type === 'failed') throw event.error
    if (event.type !== 'done') continue
    const parts = [...artifacts.flatMap((artifact) => artifact.parts), ...event.parts]
    // A response has at least one part: an empty reply is the empty text.
    return parts.length === 0 ? textResponse('') : { parts: parts.map(toRequestPart), final: true }
  }
  throw new MoleculeError('no_end', 'the backend ended without a result', { retryable: true })
}

/** A turn as one result: its text, its session, and whether it failed. */
export interface TurnResult {
  readonly responseText: string
  readonly sessionId?: string
  readonly isError: boolean
  /** Of a failed turn. */
  readonly code?: ErrorCode
}

const STDERR_CHARACTERS_MAX = 500

/** Reads a stream to its end. Never throws for a failed turn; what people see of a failure is `runtime/failure-sentence.ts`. */
export async function collectResult(events: AsyncIterable<BackendEvent>): Promise<TurnResult> {
  let sessionId: string | undefined
  async function* noteSession() {
    for await (const event of events) {
      if (event.type === 'session') sessionId = event.token
      yield event
    }
  }
  try {
    const responseText = joinText((await collectResponse(noteSession())).parts)
    return { isError: false, responseText, sessionId }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    return { isError: true, responseText: failureText(error), code: error.code }
  }
}

function failureText({ code, message, details }: MoleculeError): string {
  if (code === 'timeout') return 'Query timed out'
  if (code === 'no_end' || code === 'unreadable_output') return 'Failed to parse CLI output'
  const { stderr } = details
  return (code === 'exit' && typeof stderr === 'string' && stderr.slice(-STDERR_CHARACTERS_MAX)) || message
}
