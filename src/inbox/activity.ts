/**
 * The seam of the activity log for those who add notes, and those who follow it: the inbox says that a log has grown.
 * What stands in it is read by `src/views/activity.ts`.
 */

/** A line that a person or an agent writes into the activity log. */
export interface ActivityNote {
  readonly type: string
  readonly text: string
  readonly by: string
}

export interface Activity {
  /** Returns the note's number. */
  addNote(workspaceId: string, note: ActivityNote): Promise<number>
  /** Calls back with the workspace whose log may have grown, or without one where any may have. A hint only. */
  onChange(callback: (workspaceId?: string) => void): () => void
  /** Listens to one log. A change between two waits is not lost: it ends the next wait at once. */
  listen(workspaceId: string): LogListener
}

export interface LogListener {
  /** Resolves when the log may have grown, after some seconds (a hint may be lost), or on abort. */
  next(signal: AbortSignal): Promise<void>
  stop(): void
}
