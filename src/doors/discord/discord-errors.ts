/** What Discord's refusals mean: the result of a send, and one sentence that says what to click. Never with the token. */
import { MoleculeError } from '../../errors.ts'
import type { SendResult } from '../chat/channel.ts'
import { networkCode, wasNeverSent } from '../chat/service-calls.ts'

const PORTAL = 'https://discord.com/developers/applications'
/** View channels, send messages (also in threads), embed links, attach files, read the history, add reactions. */
const PERMISSIONS = '274878024768'

export function inviteUrl(applicationId: string): string {
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=bot+applications.commands&permissions=${PERMISSIONS}`
}

/** The error for a close code of the gateway that no retry helps; undefined: the library reconnects. */
export function discordRefusal(closeCode: number, token: string): MoleculeError | undefined {
  const sentence = refusalSentence(closeCode, botPage(token))
  return sentence === undefined ? undefined : new MoleculeError('bad_config', sentence)
}

function refusalSentence(closeCode: number, page: string): string | undefined {
  if (closeCode === 4004) return `Discord refuses the token: open ${page}, click Reset Token, and give the new token.`
  if (closeCode === 4014)
    return `The bot may not read messages: open ${page}, turn on Message Content Intent, and save.`
  if (closeCode >= 4010 && closeCode <= 4013)
    return `Discord refuses the connection of the bot (close code ${closeCode}).`
  return undefined
}

/** The first part of a token is the id of the application, which is no secret. */
function botPage(token: string): string {
  const id = Buffer.from(token.split('.')[0] ?? '', 'base64').toString()
  return /^\d{15,22}$/.test(id) ? `${PORTAL}/${id}/bot` : `${PORTAL}, then your application, then Bot`
}

/** The error of `check` and `connect`. The library's own error may contain the token and is not kept. */
export function connectError(error: unknown, token: string): MoleculeError {
  if (error instanceof MoleculeError) return error
  const { status, code } = error as { status?: unknown; code?: unknown }
  const isRefused = status === 401 || code === 'TokenInvalid' || !isHeaderText(token)
  const refused = isRefused ? discordRefusal(4004, token) : undefined
  if (refused) return refused
  const problem = typeof status === 'number' ? `it answers ${status}` : (networkCode(error) ?? 'the connection ended')
  return new MoleculeError('provider_unreachable', `Discord cannot be reached: ${problem}`, { retryable: true })
}

/** A token with a line break or a blank cannot be sent at all. */
function isHeaderText(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token)
}

/** A reply needs the right to read the history; the same message that is no reply does not. */
export const mayNotReply = (error: unknown): boolean => (error as { code?: unknown }).code === 160_002

/** How a send ended that threw. */
export function discordOutcome(error: unknown): Exclude<SendResult, { type: 'sent' }> {
  const { status, code, retryAfter, rawError } = error as Record<string, unknown>
  if (typeof retryAfter === 'number') {
    return { type: 'failed', error: 'Discord asks to wait (rate limit).', retryAfterMs: Math.max(retryAfter, 0) }
  }
  if (typeof status !== 'number') {
    if (wasNeverSent(error))
      return { type: 'failed', error: `Discord cannot be reached (${networkCode(error)}).`, isUnsent: true }
    return { type: 'unknown', error: `The answer of Discord is missing (${networkCode(error) ?? 'timeout'}).` }
  }
  if (status >= 500) return { type: 'failed', error: `Discord failed with ${status}.` }
  if (status === 401) return { type: 'failed', error: 'Discord refuses the token.' }
  const { message = '' } = (rawError ?? {}) as { message?: string }
  return { type: 'failed', error: clientErrorSentence(status, code, message), final: true }
}

function clientErrorSentence(status: number, code: unknown, message: string): string {
  if (code === 10003) return 'The channel no longer exists on Discord.'
  if (code === 50007) return 'This person takes no direct messages from the bot.'
  if (code === 50001 || code === 50013) {
    return 'The bot may not write in this channel: give its role View Channel and Send Messages there.'
  }
  return `Discord refuses the message with ${status}: ${message.slice(0, 200)}`
}
