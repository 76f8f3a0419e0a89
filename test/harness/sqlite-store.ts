/** A new SQLite store in a temporary folder, on a clock that the test moves. Both are removed when the test ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { workspaceId } from '../../src/ids.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Row, type Store, sql, type Value } from '../../src/store/store.ts'
import { type ManualClock, manualClock } from '../fakes/manual-clock.ts'

/** Noon of a day, UTC. */
export const START_MS = Date.UTC(2026, 0, 15, 12)

export interface SqliteUnderTest {
  readonly store: Store
  readonly clock: ManualClock
  readonly folder: string
  /** Runs one statement, for example to plant a row that only another part of the platform writes. */
  run(text: string, ...values: Value[]): Promise<Row[]>
  /** Stores a workspace without a folder. Returns its id. */
  addWorkspace(row?: { readonly id?: string; readonly name?: string; readonly hosted?: number }): Promise<string>
}

export function openTestStore(t: Pick<TestContext, 'after'>): SqliteUnderTest {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-store-'))
  const clock = manualClock(START_MS)
  const store = openSqlite({ path: join(folder, 'molecule.db'), clock })
  t.after(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  return {
    store,
    clock,
    folder,
    run: (text, ...values) => store.write(() => sql(text, values)),
    async addWorkspace({ id = workspaceId(), name = 'test', hosted = 1 } = {}) {
      await store.write(function* () {
        yield* sql(
          `insert into workspaces (id, name, role, runtime, settings, status, created_at)
           values ($1, $2, 'a role', 'mock', '{}', 'online', now_ms())`,
          [id, name],
        )
        yield* sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, $2, 1)', [id, hosted])
      })
      return id
    },
  }
}
