/**
 * How an error of ours leaves by this door outside A2A: `{error: {code, message, hint, id}}`. The status is the one
 * the protocol's table gives the code, so that both ways of asking agree. What is a defect of ours shows nothing of
 * the inside: the log has the whole error under the request's id, and the id is all that a caller gets.
 */
import { type ErrorCode, MoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { WIRE_ERRORS } from '../../../protocol/json-rpc.ts'
import type { HttpAnswer, HttpExchange } from './answer.ts'

export function errorAnswer(error: MoleculeError, requestId: string): HttpAnswer {
  const shown = publicError(error, requestId)
  const hint = HINTS[shown.code]
  return {
    status: WIRE_ERRORS[shown.code].status,
    headers: errorHeaders(shown),
    body: { error: { code: shown.code, message: shown.message, ...(hint ? { hint } : {}), id: requestId } },
  }
}

/** What HTTP itself says beside the body: how to authenticate, when to come again. */
export function errorHeaders({ code, details }: MoleculeError): Record<string, string> {
  const headers: Record<string, string> = {}
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = 'Bearer realm="molecule"'
  const retryAfterMs = details['retryAfterMs'] ?? (code === 'store_unavailable' ? STORE_RETRY_AFTER_MS : undefined)
  if (typeof retryAfterMs === 'number') headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
  return headers
}

/** The error as a caller may see it: unchanged, or with a sentence of its own where the message is from the inside. */
export function publicError(error: MoleculeError, requestId: string): MoleculeError {
  const sentence = INTERNAL_SENTENCES[error.code]
  if (sentence === undefined) return error
  return new MoleculeError(error.code, `${sentence} (${requestId})`, { retryable: error.retryable, cause: error })
}

/** Refusals are worth a line, defects the whole error. A client that left has nobody to be told. */
export function logFailure(log: Log, error: MoleculeError, { request, requestId }: HttpExchange): void {
  const fields = { requestId, method: request.method, path: request.url?.split('?')[0], code: error.code }
  if (error.code === 'canceled') log.debug(fields, error.message)
  else if (INTERNAL_SENTENCES[error.code] === undefined)
    log.info({ ...fields, reason: error.message }, 'request refused')
  else log.error({ ...fields, err: error }, 'request failed')
}

const STORE_RETRY_AFTER_MS = 1000

/** Codes whose message may speak of files, queries and stacks. */
const INTERNAL_SENTENCES: Partial<Readonly<Record<ErrorCode, string>>> = {
  internal: 'something went wrong here; the log has it under this id',
  store_unavailable:
    'the store cannot be reached right now; the same message may safely be sent again; the log has more under this id',
}

const HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  unauthenticated:
    'send "Authorization: Bearer <token>"; the admin token is in the file admin-token of the data folder',
  forbidden: 'ask an admin for a token with the right role',
  queue_full: 'wait as long as Retry-After says, then send the same message again',
  too_many_requests: 'wait as long as Retry-After says, then send the same again',
  too_large: 'send less at once, or send a URL in place of the content',
  idempotency_conflict: 'use a new messageId for new content',
  store_unavailable: 'send the same again after Retry-After',
  internal: 'look for the id in molecule.log of the data folder',
}
