/**
 * What Telegram's refusals mean: the result of a call, and one sentence that says what to do. The library's errors contain
 * the URL, and the URL contains the token: no text of them is used but the service's own description.
 */
import { MoleculeError } from '../../errors.ts'
import type { SendResult } from '../chat/channel.ts'
import { networkCode, wasNeverSent } from '../chat/service-calls.ts'

const TOKEN_SENTENCE =
  'Telegram refuses the token: open https://t.me/BotFather, send /token, choose the bot, and give the token that it shows.'

const MOVED_SENTENCE = 'The group became a supergroup and has a new id.'

/** The answer of the service to a refused call. */
interface Refusal {
  readonly error_code: number
  readonly description: string
  readonly parameters?: { readonly retry_after?: number; readonly migrate_to_chat_id?: number }
}

export function refusalOf(error: unknown): Refusal | undefined {
  return typeof error === 'object' && error !== null && 'error_code' in error ? (error as Refusal) : undefined
}

export function isTokenText(token: string): boolean {
  return /^\d{1,20}:[\w-]{1,100}$/.test(token)
}

export function tokenRefused(): MoleculeError {
  return new MoleculeError('bad_config', TOKEN_SENTENCE)
}

/** The error of `check` and `connect`. */
export function connectError(error: unknown): MoleculeError {
  if (error instanceof MoleculeError) return error
  const refusal = refusalOf(error)
  // A token that cannot exist gets 404.
  if (refusal?.error_code === 401 || refusal?.error_code === 404) return tokenRefused()
  return new MoleculeError('provider_unreachable', pollProblem(error), { retryable: true })
}

/** Why the bot gets no messages now. */
export function pollProblem(error: unknown): string {
  const refusal = refusalOf(error)
  if (refusal?.error_code === 409)
    return 'Another program reads the messages of this bot: stop it, or give this one its own bot.'
  if (refusal) return `Telegram refuses to give messages (${refusal.error_code}).`
  return `Telegram cannot be reached (${networkCode(error) ?? 'no answer'}).`
}

/** How a call ended that threw. */
export function telegramOutcome(error: unknown): Exclude<SendResult, { type: 'sent' }> {
  const refusal = refusalOf(error)
  if (refusal === undefined) {
    if (wasNeverSent(error))
      return { type: 'failed', error: `Telegram cannot be reached (${networkCode(error)}).`, isUnsent: true }
    if (isForeignAnswer(error))
      return { type: 'failed', error: 'A server before Telegram answered with an error page.' }
    return { type: 'unknown', error: `The answer of Telegram is missing (${networkCode(error) ?? 'timeout'}).` }
  }
  const { error_code, description, parameters } = refusal
  if (error_code === 429) {
    return {
      type: 'failed',
      error: 'Telegram asks to wait (rate limit).',
      retryAfterMs: (parameters?.retry_after ?? 1) * 1000,
    }
  }
  if (parameters?.migrate_to_chat_id !== undefined)
    return { type: 'failed', error: MOVED_SENTENCE, movedTo: String(parameters.migrate_to_chat_id) }
  if (error_code >= 500) return { type: 'failed', error: `Telegram failed with ${error_code}.` }
  if (error_code === 401) return { type: 'failed', error: 'Telegram refuses the token.' }
  return {
    type: 'failed',
    error: refusalSentence(refusal) ?? `Telegram refuses the message: ${description.slice(0, 200)}`,
    final: true,
  }
}

function refusalSentence({ error_code, description }: Refusal): string | undefined {
  if (/chat not found/.test(description)) return 'The chat no longer exists on Telegram.'
  if (error_code === 403)
    return 'The bot may not write in this chat: it was blocked, removed, or has no right to write.'
  return undefined
}

/** An HTML page instead of JSON comes from a proxy that did not reach the service. An empty answer proves nothing. */
function isForeignAnswer(error: unknown): boolean {
  const { error: inner } = error as { error?: { type?: unknown; message?: unknown } }
  return inner?.type === 'invalid-json' && /Unexpected token '<'/.test(String(inner.message))
}
