import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { inboxModelContract } from './inbox-model.ts'

/** An embedded store belongs to one process: both nodes share it. */
async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'molecule-model-'))
  const store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
  const dispose = async () => {
    await store.close()
    await rm(folder, { recursive: true })
  }
  return { stores: [store, store], dispose }
}

inboxModelContract({ name: 'SQLite', open }, { runs: 200, steps: 50 })
