/** What happens in a workspace from a number on, each thing once, also while the platform is away for a time. */
import type { ActivityView, PlatformClient } from '../client/platform.ts'
import { type Clock, sleep } from '../clock.ts'
import { MoleculeError } from '../errors.ts'

const RETRY_MS = 500

export interface Following {
  readonly client: PlatformClient
  readonly id: string
  readonly since: number
  readonly clock: Clock
  /** Told once each time the platform cannot be reached. */
  readonly away: (error: MoleculeError) => void
}

/** Ends with the signal; what trying again cannot mend is thrown. */
export async function* followActivity(following: Following, signal: AbortSignal): AsyncIterable<ActivityView> {
  const { client, id, clock } = following
  let { since } = following
  let told = false
  while (!signal.aborted) {
    try {
      for await (const { seq, events } of client.events(id, since, signal)) {
        told = false
        yield* events
        since = seq
      }
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !thrown.retryable) throw thrown
      if (!told) following.away(thrown)
      told = true
      await sleep(clock, RETRY_MS, signal)
    }
  }
}
