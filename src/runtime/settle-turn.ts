/**
 * The last step of a turn: its outcome reaches the inbox. While the inbox cannot be reached the outcome is kept and
 * offered again, so that a reply once computed is never computed twice for want of a connection.
 */
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import type { Inbox, Lease, NumberedEvents, Outcome } from '../inbox/inbox.ts'
import type { Log } from '../log.ts'
import { sleep } from '../wait.ts'
import { toFailure } from './retry-policy.ts'
import type { TurnEnd } from './turn.ts'

const RETRY_MS = 250
const RETRY_MS_MAX = 10_000

/** Why a turn is stopped from outside; it decides what its message becomes. */
export type StopReason = 'canceled' | 'stale' | 'drain'

export interface SettleTurnOptions {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly log: Log
  readonly end: TurnEnd
  /** The runtime is leaving: an outcome that cannot be stored now is given up, and the message will be run again. */
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
      if (answer === 'stale') log.warn({ messageId: lease.messageId }, 'a result came after another worker took over')
      return
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      log.warn({ err: error, messageId: lease.messageId, outcome: outcome.type }, 'a turn could not be settled yet')
      if (leaving.aborted || (!error.retryable && outcome.type === 'dead')) return
      if (error.retryable) await sleep(clock, Math.min(RETRY_MS * 2 ** tries, RETRY_MS_MAX), leaving)
      else {
        // What the store refuses for good (a reply that it cannot hold) would keep its conversation leased for ever.
        outcome = { type: 'dead', failure: toFailure(error) }
        unsent = undefined
      }
    }
  }
}

/** A turn that came to its own end before the stop reached it keeps that end, unless the message is cancelled. */
function finalOutcome(outcome: Outcome, reason: StopReason | undefined): Outcome | undefined {
  // Paid for, whatever becomes of it.
  const used = outcome.usage === undefined ? {} : { usage: outcome.usage }
  if (reason === 'canceled') return { type: 'stopped', ...used }
  if (reason === undefined || outcome.type === 'done') return outcome
  // Taken over: whatever this worker says now is stale, and a failure is of no use to anybody.
  if (reason === 'stale') return undefined
  return outcome.type === 'released' ? outcome : { type: 'released', interrupted: true, ...used }
}
