/**
 * A failed turn on its way to the inbox: it gets an id, the log gets everything under that id, and what is stored is
 * the clean sentence with category and id, and for the owner the error's own words with secrets masked.
 */
import { ulid } from '../ids.ts'
import type { Failure, Lease, Outcome } from '../inbox/inbox.ts'
import type { Log } from '../log.ts'

export interface ExplainFailureOptions {
  readonly log: Log
  readonly mask: (text: string) => string
}

export function explainFailure(outcome: Outcome, lease: Lease, { log, mask }: ExplainFailureOptions): Outcome {
  if (outcome.type !== 'retry' && outcome.type !== 'dead') return outcome
  const id = `err_${ulid()}`
  const { workspaceId, taskId, messageId } = lease
  log.warn({ errorId: id, workspaceId, taskId, messageId, outcome: outcome.type, ...outcome.failure }, 'a turn failed')
  return { ...outcome, failure: toStoredFailure(outcome.failure, id, mask) }
}

function toStoredFailure(failure: Failure, id: string, mask: ExplainFailureOptions['mask']): Failure {
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

/** Texts are masked; numbers and what else there may be hold no secret. */
function maskDetails(
  details: Readonly<Record<string, unknown>>,
  mask: ExplainFailureOptions['mask'],
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([key, value]) => [key, typeof value === 'string' ? mask(value) : value]),
  )
}
