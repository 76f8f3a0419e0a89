/** Follows the event log of a workspace from a number on, each row once and whole, through restarts of the platform. */
import type { PlatformClient } from '../../client/platform-client.ts'
import type { ActivityView } from '../../client/views.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { sleep } from '../../wait.ts'

/** Between two tries to reach a platform that is away. */
export const RETRY_MS = 500

export interface FollowActivityOptions {
  readonly client: Pick<PlatformClient, 'events'>
  readonly id: string
  readonly since: number
  readonly clock: Clock
  /** Called once per outage. */
  readonly onUnreachable: (error: MoleculeError) => void
}

/** The entries of each row. Ends when the signal aborts; throws an error that is not retryable. */
export async function* followActivity(
  options: FollowActivityOptions,
  signal: AbortSignal,
): AsyncIterable<readonly ActivityView[]> {
  const { client, id, clock } = options
  let { since } = options
  let isReported = false
  while (!signal.aborted) {
    try {
      for await (const { seq, events } of client.events(id, since, signal)) {
        isReported = false
        yield events
        since = seq
      }
    } catch (thrown) {
      if (!(thrown instanceof MoleculeError) || !thrown.retryable) throw thrown
      if (!isReported) options.onUnreachable(thrown)
      isReported = true
      await sleep(clock, RETRY_MS, signal)
    }
  }
}
