/** A workspace as rows only, without a folder: for tests of what happens to its messages. */
import { workspaceId } from '../../../src/ids.ts'
import { type Store, sql } from '../../../src/store/store.ts'

interface InsertedWorkspace {
  readonly id?: string
  readonly name?: string
  readonly role?: string
  /** Whether the platform itself works for it (1), or only a worker of its own (0). */
  readonly hosted?: number
  readonly slots?: number
}

/** Returns its id. */
export async function insertWorkspace(store: Store, given: InsertedWorkspace = {}): Promise<string> {
  const { id = workspaceId(), name = 'test', role = '', hosted = 1, slots = 1 } = given
  await store.write(function* () {
    yield* sql(
      `insert into workspaces (id, name, role, runtime, settings, status, created_at)
       values ($1, $2, $3, 'mock', '{}', 'online', now_ms())`,
      [id, name, role],
    )
    yield* sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, $2, $3)', [id, hosted, slots])
  })
  return id
}
