/**
 * Calls of a chat service to a channel that takes them. Anyone may make such a call, so each is bounded before the channel
 * sees it: its time, and how many of one channel are answered at once. Whether it is genuine is the channel's to check.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { abortable } from '../../wait.ts'
import type { Channel, InboundWebhook, WebhookAnswer } from './channel.ts'

export type AnswerWebhook = (call: InboundWebhook, signal: AbortSignal) => Promise<WebhookAnswer>

/** Services give up after some seconds and call again. */
const CALL_MS_MAX = 10_000
/** Of one channel; one more is refused, and the service calls again. */
const OPEN_CALLS_MAX = 32

/** Undefined for a channel without webhooks. */
export function createAnswerWebhook(channel: Channel, clock: Clock): AnswerWebhook | undefined {
  if (channel.webhook === undefined) return undefined
  let open = 0
  return async (call, signal) => {
    if (open >= OPEN_CALLS_MAX) {
      const details = { retryAfterMs: 1000 }
      throw new MoleculeError('too_many_requests', 'the channel answers too many calls', { retryable: true, details })
    }
    open += 1
    const late = new AbortController()
    const cancel = clock.after(CALL_MS_MAX, () => late.abort())
    const either = AbortSignal.any([signal, late.signal])
    const answered = (async () => await channel.webhook?.(call, either))().finally(() => {
      open -= 1
    })
    answered.catch(() => undefined)
    try {
      const answer = await abortable(answered, either)
      if (answer === undefined) throw new MoleculeError('internal', 'the channel gave no answer')
      return answer
    } catch (error) {
      if (!late.signal.aborted) throw error
      throw new MoleculeError('timeout', `the channel did not answer within ${CALL_MS_MAX / 1000} s`, { cause: error })
    } finally {
      cancel()
    }
  }
}
