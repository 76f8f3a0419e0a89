/** The seam to what happened in a workspace: its log, read by number, followed, and added to by notes. */

export interface ActivityQuery {
  readonly workspaceId: string
  /** The number of the last entry that is known; 0 = from the oldest that is kept. */
  readonly sinceSeq: number
  readonly type?: string
  readonly limit: number
  /** The last ones in place of the first ones after `sinceSeq`. */
  readonly newest?: boolean
}

/** One thing that happened. Several may share a number: what was stored together is told together. */
export interface ActivityEntry {
  readonly seq: number
  readonly atMs: number
  /** status, reply, retry, late, tool, progress, artifact, or what a note calls itself. */
  readonly type: string
  readonly taskId?: string
  readonly state?: string
  readonly name?: string
  readonly text?: string
  /** Who wrote a note. */
  readonly by?: string
}

export interface ActivityPage {
  readonly entries: readonly ActivityEntry[]
  /** Where the next page begins; the same as asked when nothing is new. */
  readonly nextSeq: number
}

export interface ActivityNote {
  readonly type: string
  readonly text: string
  readonly by: string
}

/** All entries of one row of the log; pieces of replies are entries of the type `text`. */
export interface ActivityRow {
  readonly seq: number
  readonly entries: readonly ActivityEntry[]
}

/**
 * Contract: `read` and `place` throw `pruned` where something between the cursor and what is kept has gone. `follow`
 * yields every row after `afterSeq`, in commit order, each once, until the signal aborts or the workspace is gone.
 */
export interface Activity {
  read(query: ActivityQuery): Promise<ActivityPage>
  /** Where to follow from: the number given, if it is still a place to go on from, else the end of the log. */
  resolveCursor(workspaceId: string, afterSeq: number | undefined): Promise<number>
  follow(workspaceId: string, afterSeq: number, signal: AbortSignal): AsyncIterable<ActivityRow>
  /** The next rows after a number, a few hundred at most; undefined when the workspace is gone and all was read. */
  page(workspaceId: string, afterSeq: number): Promise<readonly ActivityRow[] | undefined>
  /** The last number of every workspace's log. */
  heads(): Promise<ReadonlyMap<string, number>>
  /** Calls back with a workspace whose log may have grown, without one where any may have: advice to look, no more. */
  onChange(callback: (workspaceId?: string) => void): () => void
  /** Gives the note's number. */
  addNote(workspaceId: string, note: ActivityNote): Promise<number>
}
