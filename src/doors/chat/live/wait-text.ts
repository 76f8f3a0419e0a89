/** Why a message waits, in one sentence for its chat. Decided by states and codes; the reason of the platform is only shown. */
import type { ApiAnswer } from '../../../api/api.ts'
import { publicReason } from '../../../views/public-reason.ts'

export type WaitingMessage = Pick<
  ApiAnswer<'GET /workspaces/{id}/conversations/{conversation}'>['messages'][number],
  'state' | 'place' | 'workspace_is' | 'code' | 'reason' | 'next_try_at'
>

/** Undefined: it waits for nothing that a person should know. */
export function waitText(message: WaitingMessage): string | undefined {
  const { state, place = 0, workspace_is: stopped, next_try_at: at } = message
  if (state === 'queued') {
    if (stopped !== undefined) return `Waiting: ${STOPPED[stopped]}`
    return `Waiting: ${place === 0 ? 'the agent works on messages of other chats.' : behindText(place)}`
  }
  if (state !== 'rate_limited' && state !== 'parked') return undefined
  const next = at === undefined ? '' : `; it goes on at ${at.slice(11, 16)} UTC`
  return `Waiting: ${reasonOf(message)}${next}.`
}

/** Of the newest message, while the one that it waits for waits itself. */
export const alsoWaiting = (text: string, others: number): string => {
  if (others === 0) return text
  return `${text} ${others === 1 ? '1 more message waits' : `${others} more messages wait`} behind it.`
}

const behindText = (place: number): string =>
  `${place === 1 ? '1 message is' : `${place} messages are`} before yours. \`/stop\` ends what runs and waits here.`

const STOPPED = {
  paused: 'the agent is paused. Your message runs when its owner resumes it.',
  offline: 'the machine of the agent is not connected. Your message runs when it is back.',
} as const satisfies Record<NonNullable<WaitingMessage['workspace_is']>, string>

const REASONS: Readonly<Record<string, string>> = {
  rate_limited: "the model provider's rate limit is reached",
  overloaded: 'the model provider is overloaded',
  quota_exhausted: 'the quota at the model provider is used up',
  auth_failed: 'the agent is not logged in to its model provider, and its owner must log it in',
}

/** A message that was given back before its turn began has a reason of its own. */
function reasonOf({ code = '', reason = '' }: WaitingMessage): string {
  const known = REASONS[code]
  if (known !== undefined) return known
  return code === 'waiting' && reason !== '' ? publicReason(reason.replace(/^waiting: /, '')) : 'the last try failed'
}
