/** The seam of a workspace's owner: its queue as a whole. */
import type { Failure } from './worker.ts'

/**
 * Contract: a paused queue admits messages and leases none. A running turn goes on; with `now` it is killed and its
 * message waits again. `end` settles every open message with the failure and removes the queue, in one transaction, and
 * returns how many tasks it ended; a second `end` changes nothing.
 */
export interface WorkspaceQueues {
  pause(workspaceId: string, options: { readonly now: boolean }): Promise<void>
  /** Pauses the queue and cancels the task of every running turn, in one transaction; the ids of those tasks. */
  stop(workspaceId: string): Promise<readonly string[]>
  resume(workspaceId: string): Promise<void>
  /** A limit of the workspace changed: what waits for one (slots, turns of the hour, budget of the day) looks again now. */
  limitsChanged(workspaceId: string): Promise<void>
  /** Its messages that failed and wait for a late attempt are ready now: their worker was restarted or works again. */
  retryFailed(workspaceId: string): Promise<void>
  end(workspaceId: string, failure: Failure): Promise<number>
}
