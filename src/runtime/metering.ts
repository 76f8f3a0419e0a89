/** What a turn used, on its way to the inbox; and the end of one that may not begin yet. */
import type { Outcome, Usage } from '../inbox/inbox.ts'
import type { Brief } from '../protocol/brief.ts'

/** For a turn that is paid for, its time at least; for another only what it said by itself. */
export function usageOfTurn(brief: Brief, usage: Usage | undefined, durationMs: number): { usage?: Usage } {
  return usage === undefined && brief.metered !== true ? {} : { usage: { ...usage, durationMs } }
}

/** Nothing was begun: the message goes back, to be looked at again when there is room. */
export function parkedOutcome({ afterMs, reason }: NonNullable<Brief['parked']>): Outcome {
  return { type: 'released', interrupted: false, parked: { afterMs, said: { parts: [{ text: reason }] } } }
}
