/** Notes in the activity log, and the news that a log has grown. */
import type { Activity } from '../activity.ts'
import { addNote } from '../commands/add-note.ts'
import type { InboxContext } from './context.ts'
import { listenForChanges, RECHECK_MS } from './watchers.ts'

export function createActivity(context: InboxContext): Activity {
  const { store, watchers } = context
  return {
    onChange: (callback) =>
      watchers.watchAll((id) => {
        // Changes of tasks come with the task's id.
        if (id === undefined || id.startsWith('ws_')) callback(id)
      }),
    listen(workspaceId) {
      const { next, stop } = listenForChanges(context, workspaceId)
      return { stop, next: async (signal) => void (await next(RECHECK_MS, signal)) }
    },
    async addNote(workspaceId, note) {
      const seq = await store.write(() => addNote(workspaceId, note), workspaceId)
      context.changed(workspaceId)
      return seq
    },
  }
}
