/** What refusals of a homeserver mean: the result of a call, and one sentence that says what to do. */
import { MoleculeError } from '../../errors.ts'
import type { SendResult } from '../chat/channel.ts'
import { networkCode, wasNeverSent } from '../chat/service-calls.ts'
import { MatrixRefusal } from './matrix-api.ts'

const TOKEN_SENTENCE =
  'The homeserver refuses the access token: log in again with "molecule channel add matrix --replace".'
const RETRY_MS_DEFAULT = 5000

export const ENCRYPTED_SENTENCE =
  'I cannot read encrypted rooms. Make a room without encryption (turn off "Enable end-to-end encryption" when you create it), and invite me there.'

export const ENCRYPTED_PROBLEM = 'This room is encrypted, and the bot writes only in rooms without encryption.'

const TOKEN_CODES: ReadonlySet<unknown> = new Set(['M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN', 'M_USER_DEACTIVATED'])

/** True when the token is good for nothing more. */
export const isTokenRefused = (error: unknown): boolean =>
  error instanceof MatrixRefusal && (error.status === 401 || TOKEN_CODES.has(error.code))

export const tokenRefused = (): MoleculeError => new MoleculeError('bad_config', TOKEN_SENTENCE)

/** A room or an event is gone, or the bot may not see it. */
export const isGone = (error: unknown): boolean =>
  error instanceof MatrixRefusal && error.code !== undefined && (error.status === 403 || error.status === 404)

/** The error of `check` and `connect`. */
export function connectError(error: unknown): MoleculeError {
  if (error instanceof MoleculeError) return error
  if (isTokenRefused(error)) return tokenRefused()
  if (error instanceof MatrixRefusal && error.status === 404)
    return new MoleculeError('bad_config', 'There is no Matrix homeserver at this address: check --service-url.')
  return new MoleculeError('provider_unreachable', connectProblem(error), { retryable: true })
}

/** Why nothing arrives now. */
export function connectProblem(error: unknown): string {
  if (error instanceof MatrixRefusal)
    return error.status === 429
      ? 'The homeserver asks to wait (rate limit).'
      : `The homeserver answers ${error.status}.`
  return `The homeserver cannot be reached (${networkCode(error) ?? 'no answer'}).`
}

/** How a call ended that threw. */
export function matrixOutcome(error: unknown): Exclude<SendResult, { type: 'sent' }> {
  if (!(error instanceof MatrixRefusal)) {
    if (wasNeverSent(error))
      return { type: 'failed', error: `The homeserver cannot be reached (${networkCode(error)}).`, isUnsent: true }
    return { type: 'unknown', error: `The answer of the homeserver is missing (${networkCode(error) ?? 'timeout'}).` }
  }
  const { status, code, retryAfterMs } = error
  if (status === 429) {
    const waitMs = retryAfterMs ?? RETRY_MS_DEFAULT
    return { type: 'failed', error: 'The homeserver asks to wait (rate limit).', retryAfterMs: waitMs }
  }
  if (status >= 500) return { type: 'failed', error: `The homeserver failed with ${status}.` }
  if (isTokenRefused(error)) return { type: 'failed', error: 'The homeserver refuses the access token.' }
  // A page of a proxy: no homeserver refused anything.
  if (code === undefined) return { type: 'failed', error: `A server before the homeserver answered with ${status}.` }
  return { type: 'failed', error: refusalSentence(status, code), final: true }
}

function refusalSentence(status: number, code: string): string {
  if (code === 'M_FORBIDDEN')
    return 'The bot may not do this here: invite it to the room again, or give it the right to write.'
  if (code === 'M_NOT_FOUND') return 'The room no longer exists on the homeserver.'
  if (code === 'M_TOO_LARGE') return 'The message or its file is larger than the homeserver takes.'
  if (code === 'M_CONSENT_NOT_GIVEN')
    return 'The bot has to accept the terms of its homeserver: log in as the bot in a browser once.'
  return `The homeserver refuses the message with ${status} ${code.slice(0, 100)}.`
}
