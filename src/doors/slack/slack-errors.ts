/**
 * What Slack's refusals mean: the result of a call, and one sentence that says what to do. Slack answers most refusals with
 * status 200 and the name of an error. No text of the libraries' errors is used: it may have a token in it.
 */
import { MoleculeError } from '../../errors.ts'
import { truncate } from '../../truncate.ts'
import type { SendResult } from '../chat/channel.ts'
import { networkCode, wasNeverSent } from '../chat/service-calls.ts'

const APPS = 'https://api.slack.com/apps'

/** A limit of the service, from its answer 429. */
export class SlackLimit extends Error {
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super('rate limit')
    this.retryAfterMs = retryAfterMs
  }
}

const TOKEN_ERRORS: readonly string[] = [
  ...['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired', 'not_allowed_token_type'],
]
/** Slack says of these that the call may have been carried out in part. */
const UNKNOWN_ERRORS: readonly string[] = ['fatal_error', 'internal_error', 'request_timeout']
const LATER_ERRORS: readonly string[] = ['service_unavailable', 'team_added_to_org', 'accesslimited']

const SENTENCES: Readonly<Record<string, string>> = {
  channel_not_found: 'The channel no longer exists on Slack, or the bot may not see it.',
  not_in_channel: 'The bot is not in this channel: write /invite and its name there.',
  is_archived: 'The channel is archived on Slack.',
  msg_too_long: 'The message is too long for Slack.',
  restricted_action:
    'The bot may not write in this channel: a setting of the Slack workspace allows it to others only.',
  user_not_found: 'This person no longer exists on Slack.',
  cannot_dm_bot: 'Slack lets no bot write to another bot.',
}

/** The name that Slack gives a refusal; undefined for every other failure. */
export function slackErrorName(error: unknown): string | undefined {
  const { data } = (error ?? {}) as { data?: { error?: unknown } }
  return typeof data?.error === 'string' ? data.error : undefined
}

function limitOf(error: unknown): SlackLimit | undefined {
  if (error instanceof SlackLimit) return error
  const { original } = (error ?? {}) as { original?: unknown }
  return original instanceof SlackLimit ? original : undefined
}

export const tokenRefused = (which: 'bot' | 'app'): MoleculeError =>
  new MoleculeError(
    'bad_config',
    which === 'bot'
      ? `Slack refuses the bot token: open ${APPS}, choose the app, then OAuth & Permissions, and give the token that begins with xoxb-.`
      : `Slack refuses the app token: open ${APPS}, choose the app, then Basic Information, App-Level Tokens, and give a token with the scope connections:write that begins with xapp-.`,
  )

/** The error of `check` and `connect`. */
export function connectError(error: unknown, which: 'bot' | 'app'): MoleculeError {
  if (error instanceof MoleculeError) return error
  const name = slackErrorName(error)
  if (name === 'missing_scope') return new MoleculeError('bad_config', scopeSentence(error))
  if (name === 'link_disabled' || name === 'socket_mode_disabled')
    return new MoleculeError('bad_config', `Socket Mode is off: open ${APPS}, choose the app, and turn on Socket Mode.`)
  if (name !== undefined && TOKEN_ERRORS.includes(name)) return tokenRefused(which)
  const outcome = slackOutcome(error)
  return new MoleculeError('provider_unreachable', outcome.error, { retryable: true })
}

/** How a call ended that threw. */
export function slackOutcome(error: unknown): Exclude<SendResult, { type: 'sent' }> {
  const limit = limitOf(error)
  if (limit) return { type: 'failed', error: 'Slack asks to wait (rate limit).', retryAfterMs: limit.retryAfterMs }
  const name = slackErrorName(error)
  if (name !== undefined) return refusalOutcome(name, error)
  const { statusCode, original = error } = (error ?? {}) as { statusCode?: unknown; original?: unknown }
  if (typeof statusCode === 'number') return { type: 'failed', error: `Slack failed with ${statusCode}.` }
  if (wasNeverSent(original))
    return { type: 'failed', error: `Slack cannot be reached (${networkCode(original)}).`, isUnsent: true }
  return { type: 'unknown', error: `The answer of Slack is missing (${networkCode(original) ?? 'timeout'}).` }
}

function refusalOutcome(name: string, error: unknown): Exclude<SendResult, { type: 'sent' }> {
  if (name === 'ratelimited' || name === 'rate_limited')
    return { type: 'failed', error: 'Slack asks to wait (rate limit).', retryAfterMs: 1000 }
  if (UNKNOWN_ERRORS.includes(name)) return { type: 'unknown', error: `Slack failed (${name}).` }
  if (LATER_ERRORS.includes(name)) return { type: 'failed', error: `Slack failed (${name}).` }
  if (TOKEN_ERRORS.includes(name)) return { type: 'failed', error: 'Slack refuses the token.' }
  if (name === 'missing_scope') return { type: 'failed', error: scopeSentence(error), final: true }
  // An answer that is no JSON has its text in place of a name.
  const shown = /^[a-z0-9_:.]{1,60}$/.test(name) ? name : 'an answer that cannot be read'
  return { type: 'failed', error: SENTENCES[name] ?? `Slack refuses the message: ${shown}.`, final: true }
}

function scopeSentence(error: unknown): string {
  const { needed = 'another scope' } = ((error ?? {}) as { data?: { needed?: string } }).data ?? {}
  const scopes = truncate(String(needed), 100)
  return `The bot needs ${scopes}: open ${APPS}, choose the app, add it under OAuth & Permissions, and install the app again.`
}

/** The bot no longer sees a channel, or has no right to read it: its history is empty for the bot. */
export function isGone(error: unknown): boolean {
  return ['channel_not_found', 'not_in_channel', 'thread_not_found', 'missing_scope'].includes(
    slackErrorName(error) ?? '',
  )
}
