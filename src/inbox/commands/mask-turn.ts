/**
 * Masks tokens of the platform in what a turn reports, before it is stored or sent to readers. The inbox does it, and
 * not only the runtime, because a bridge may send what it did not mask.
 */
import { maskTokens } from '../../token-mask.ts'
import type { Ask, NumberedEvents, Outcome } from '../worker.ts'
import type { SettleInput } from './record-outcome.ts'

/** Notes are not masked: only the next attempt reads them. */
export function maskEvents(numbered: NumberedEvents): NumberedEvents {
  const events = maskTokens(numbered.events)
  return events === numbered.events ? numbered : { ...numbered, events }
}

export function maskSettle<Input extends Pick<SettleInput, 'outcome' | 'unsent'>>(input: Input): Input {
  return { ...input, outcome: maskOutcome(input.outcome), unsent: input.unsent && maskEvents(input.unsent) }
}

/** A session is not masked: it is opaque to all but its backend. */
function maskOutcome(outcome: Outcome): Outcome {
  const masked = maskTokens(outcome)
  if (masked === outcome || outcome.type !== 'done' || outcome.session === undefined) return masked
  return { ...masked, session: outcome.session } as Outcome
}

/** Tool and subject are not masked: the owner allows exactly them. */
export const maskAsk = (ask: Ask): Ask => ({ ...ask, parts: maskTokens(ask.parts) })
