/**
 * The form of an error outside A2A: `{error: {code, message, hint, problems, id}}`. The status comes from the table of the
 * protocol, so A2A and the other routes agree. A defect shows nothing internal: the caller gets the request id, and the
 * log has the whole error under that id.
 */

import type { IncomingMessage } from 'node:http'
import { type ErrorCode, MoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { WIRE_ERRORS } from '../../../protocol/wire-errors.ts'
import { shorten } from '../../../truncate.ts'
import type { HttpAnswer } from './answer.ts'
import { FAILED, REFUSED } from './refusal-log.ts'

export function errorAnswer(error: MoleculeError, requestId: string): HttpAnswer {
  const shown = publicError(error, requestId)
  const { hint = HINTS[shown.code] } = shown.details
  return {
    status: WIRE_ERRORS[shown.code].status,
    headers: errorHeaders(shown),
    body: {
      error: {
        code: shown.code,
        message: shown.message,
        ...(hint ? { hint } : {}),
        ...problemsOf(shown),
        id: requestId,
      },
    },
  }
}

/** The places in a file that was sent, where the error has them. */
const problemsOf = ({ details: { problems } }: MoleculeError): object => (Array.isArray(problems) ? { problems } : {})

/** The HTTP headers of an error: how to authenticate, when to retry. */
export function errorHeaders({ code, details }: MoleculeError): Record<string, string> {
  const headers: Record<string, string> = {}
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = 'Bearer realm="molecule"'
  const retryAfterMs = details['retryAfterMs'] ?? (code === 'store_unavailable' ? STORE_RETRY_AFTER_MS : undefined)
  if (typeof retryAfterMs === 'number') headers['Retry-After'] = String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
  return headers
}

/** The error as a caller may see it: unchanged, or with a fixed sentence when its message is internal. */
export function publicError(error: MoleculeError, requestId: string): MoleculeError {
  const sentence = INTERNAL_SENTENCES[error.code]
  if (sentence === undefined) return error
  return new MoleculeError(error.code, `${sentence} (${requestId})`, { retryable: error.retryable, cause: error })
}

/** Logs a refusal as one line and a defect with the whole error. A client that disconnected is only worth debug. */
export function logFailure(
  log: Log,
  error: MoleculeError,
  { request, requestId }: { request: Pick<IncomingMessage, 'method' | 'url'>; requestId: string },
): void {
  const path = shorten(request.url?.split('?')[0] ?? '', PATH_CHARACTERS_MAX)
  const fields = { requestId, method: request.method, path, code: error.code }
  if (error.code === 'canceled') log.debug(fields, error.message)
  else if (INTERNAL_SENTENCES[error.code] === undefined)
    log.info({ ...fields, reason: shorten(error.message, REASON_CHARACTERS_MAX) }, REFUSED)
  else log.error({ ...fields, err: error }, FAILED)
}

/** A stranger chooses the path, and a reason may quote a header: longer ones are cut. */
const PATH_CHARACTERS_MAX = 200
const REASON_CHARACTERS_MAX = 500

const STORE_RETRY_AFTER_MS = 1000

/** For codes whose message may contain files, queries and stacks. */
const INTERNAL_SENTENCES: Partial<Readonly<Record<ErrorCode, string>>> = {
  internal: 'an internal error; the log has it under this id',
  store_unavailable:
    'the store is unavailable; it is safe to send the same message again; the log has more under this id',
}

const HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  unauthenticated:
    'send "Authorization: Bearer <token>"; the admin token is in the file admin-token of the data folder',
  forbidden: 'ask an admin for a token with the right role',
  queue_full: 'wait for the time in Retry-After, then send the same message again',
  too_many_requests: 'wait for the time in Retry-After, then send the same request again',
  too_large: 'send less at once, or send a URL instead of the content',
  idempotency_conflict: 'use a new key for new content',
  store_unavailable: 'send the same request again after the time in Retry-After',
  disk_low: 'free some space on the disk of the platform, then send the same message again',
  reply_damaged: 'restore the store from a backup, or send the message again under a new id',
  store_damaged: 'the owner of the platform must restore the store; keep the message until then',
  internal: 'find the id in molecule.log in the data folder',
}
