/** What happens in a workspace from a number on, each thing once, also while the platform is away for a time. */
import type { ActivityView, PlatformClient } from '../../client/platform-client.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { sleep } from '../../wait.ts'

const RETRY_MS = 500

export interface FollowActivityOptions {
  readonly client: PlatformClient
  readonly id: string
  readonly since: number
  readonly clock: Clock
  /** Told once each time the platform cannot be reached. */
  readonly onUnreachable: (error: MoleculeError) => void
}

/** Ends with the signal; what trying again cannot mend is thrown. */
export async function* followActivity(
  options: FollowActivityOptions,
  signal: AbortSignal,
): AsyncIterable<ActivityView> {
  const { client, id, clock } = options
  let { since } = options
  let reported = false
  while (!signal.aborted) {
    try {
      for await (const { seq, events } of client.events(id, since, signal)) {
        reported = false
        yield* events
        since = seq
      }
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !thrown.retryable) throw thrown
      if (!reported) options.onUnreachable(thrown)
      reported = true
      await sleep(clock, RETRY_MS, signal)
    }
  }
}
