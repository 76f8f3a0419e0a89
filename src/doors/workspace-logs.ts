/**
 * Following the logs of workspaces: the inbox says that a log has grown, and a view reads the next page. One read serves
 * all followers that ask for the same page: a thousand of them wake up for the same event, and each would read and parse it
 * again.
 */
import type { Activity } from '../inbox/activity.ts'
import type { ReadStore } from '../store/store.ts'
import { type ActivityRow, readLogCursor, readLogHeads, readLogPage } from '../views/activity.ts'

/**
 * Contract: `follow` yields every row after `afterSeq`, in commit order, each once, until the signal aborts or the workspace
 * is deleted. Readers at the same place get the same row object, so that it can be written as text once for all of them.
 */
export interface WorkspaceLogs {
  /** Where to follow from: the given number, or the end of the log. Throws `pruned` where the log no longer continues there. */
  resolveCursor(workspaceId: string, afterSeq: number | undefined): Promise<number>
  follow(workspaceId: string, afterSeq: number, signal: AbortSignal): AsyncIterable<ActivityRow>
  /** The next rows; undefined when the workspace is deleted and all was read. */
  page(workspaceId: string, afterSeq: number): Promise<readonly ActivityRow[] | undefined>
  /** The last number of every workspace's log. */
  heads(): Promise<ReadonlyMap<string, number>>
  onChange: Activity['onChange']
}

export function createWorkspaceLogs({ store, activity }: { store: ReadStore; activity: Activity }): WorkspaceLogs {
  const page = createSharedPages(store, activity)
  return {
    resolveCursor: (workspaceId, afterSeq) => readLogCursor(store, workspaceId, afterSeq),
    page,
    heads: () => readLogHeads(store),
    onChange: activity.onChange,
    async *follow(workspaceId, from, signal) {
      const changes = activity.listen(workspaceId)
      let afterSeq = from
      try {
        while (!signal.aborted) {
          const rows = await page(workspaceId, afterSeq)
          if (rows === undefined) return
          for (const row of rows) {
            afterSeq = row.seq
            yield row
          }
          if (rows.length === 0) await changes.next(signal)
        }
      } finally {
        changes.stop()
      }
    },
  }
}

/** A page is shared until a log changes, and no longer than this turn of the event loop. */
function createSharedPages(store: ReadStore, { onChange }: Activity): WorkspaceLogs['page'] {
  const pages = new Map<string, ReturnType<WorkspaceLogs['page']>>()
  // Runs before any reader that the change wakes up, so that none of them gets a page from before the change.
  onChange(() => pages.clear())
  return (workspaceId, afterSeq) => {
    const key = `${workspaceId} ${afterSeq}`
    const known = pages.get(key)
    if (known !== undefined) return known
    if (pages.size === 0) setImmediate(() => pages.clear())
    const page = readLogPage(store, workspaceId, afterSeq)
    pages.set(key, page)
    return page
  }
}
