/** Notes in the activity log, and the news that a log has grown. */
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { Activity, ActivityNote } from '../activity.ts'
import type { LogItem } from '../rows/log.ts'
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

export function* addNote(workspaceId: string, { type, text, by }: ActivityNote): Transaction<number> {
  const item: LogItem = { t: 'note', type, text, by }
  const [load] = yield* sql<{ seq: number }>(
    'update workspace_load set seq = seq + 1 where workspace_id = $1 returning seq',
    [workspaceId],
  )
  if (load === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
  yield* sql('insert into events (workspace_id, seq, at_ms, items) values ($1, $2, now_ms(), $3)', [
    workspaceId,
    load.seq,
    JSON.stringify([item]),
  ])
  return load.seq
}
