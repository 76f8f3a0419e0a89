/**
 * The last step of a turn: hands its outcome to the inbox. While the inbox cannot be reached, it keeps the outcome and
 * retries, so that a lost connection does not make the agent compute a reply twice.
 */
import { backoffMs } from '../backoff.ts'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import type { Inbox, Lease, NumberedEvents, Outcome } from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import { sleep } from '../wait.ts'
import { toFailure } from './retry-policy.ts'
import type { TurnEnd } from './turn.ts'

const RETRY_MS = 250
const RETRY_MS_MAX = 10_000

/** Why a turn was stopped from outside. It decides the outcome of the message. */
export type StopReason = 'canceled' | 'stale' | 'drain'

export interface SettleTurnOptions {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly log: Log
  readonly end: TurnEnd
  /** The runtime shuts down: an outcome that cannot be stored now is dropped, and the message runs again. */
  readonly leaving: AbortSignal
}

export async function settleTurn(lease: Lease, settling: SettleTurnOptions, stopped: AbortSignal): Promise<void> {
  const { inbox, clock, log, end, leaving } = settling
  let outcome = finalOutcome(end.outcome, stopped.aborted ? (stopped.reason as StopReason) : undefined)
  let unsent: NumberedEvents | undefined = end.unsent
  if (outcome === undefined) return
  for (let tries = 0; ; tries++) {
    try {
      const answer = await inbox.settle(lease, outcome, unsent)
      if (answer === 'stale')
        log.warn({ messageId: lease.messageId }, 'this result is too late: another worker has taken over the message')
      return
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      log.warn({ err: error, messageId: lease.messageId, outcome: outcome.type }, 'a turn could not be settled')
      if (leaving.aborted || (!error.retryable && outcome.type === 'dead')) return
      if (error.retryable) await sleep(clock, backoffMs(tries, RETRY_MS, RETRY_MS_MAX), leaving)
      else {
        // Prevents a conversation that stays leased for ever: a reply that the store refuses becomes a dead letter.
        outcome = { type: 'dead', failure: toFailure(error) }
        unsent = undefined
      }
    }
  }
}

/** A turn that ended by itself before the stop keeps its outcome, unless the message is cancelled. */
function finalOutcome(outcome: Outcome, reason: StopReason | undefined): Outcome | undefined {
  // The usage was paid for, so it is stored with every outcome.
  const used = outcome.usage === undefined ? {} : { usage: outcome.usage }
  if (reason === 'canceled') return { type: 'stopped', ...used }
  if (reason === undefined || outcome.type === 'done') return outcome
  // Another worker has taken over, so this failure must not be settled.
  if (reason === 'stale') return undefined
  return outcome.type === 'released' ? outcome : { type: 'released', interrupted: true, ...used }
}
