/**
 * Prepares the failure of a turn for the inbox. It gives the failure an id and logs everything under that id. The
 * stored failure has the public sentence with category and id, and for the owner the error's own message with secrets
 * masked.
 */
import { ulid } from '../ids.ts'
import type { Failure, Lease, Outcome } from '../inbox/inbox.ts'
import type { Log } from '../log.ts'

type Mask = (text: string) => string

export function explainFailure(outcome: Outcome, lease: Lease, { log, mask }: { log: Log; mask: Mask }): Outcome {
  if (outcome.type !== 'retry' && outcome.type !== 'dead') return outcome
  const id = `err_${ulid()}`
  const { workspaceId, taskId, messageId } = lease
  log.warn({ errorId: id, workspaceId, taskId, messageId, outcome: outcome.type, ...outcome.failure }, 'a turn failed')
  return { ...outcome, failure: toStoredFailure(outcome.failure, id, mask) }
}

function toStoredFailure(failure: Failure, id: string, mask: Mask): Failure {
  const { code, message, details, category, sentence } = failure
  return {
    code,
    message: mask(message),
    id,
    ...(details !== undefined && { details: maskDetails(details, mask) }),
    ...(category !== undefined && { category }),
    ...(sentence !== undefined && { sentence: `${sentence} (${category}, ${id})` }),
  }
}

/** Masks the texts; other values hold no secret. */
function maskDetails(details: Readonly<Record<string, unknown>>, mask: Mask): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([key, value]) => [key, typeof value === 'string' ? mask(value) : value]),
  )
}
