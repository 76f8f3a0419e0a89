/** Writes the note of a person or an agent into the activity log of a workspace. */
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction } from '../../store/store.ts'
import type { ActivityNote } from '../activity.ts'
import type { LogItem } from '../rows/log.ts'

/** Returns the number of the note. */
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
