import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { inboxContract } from './inbox-contract.ts'
import { storeContract } from './store-contract.ts'

async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'molecule-sqlite-'))
  const store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
  const dispose = async () => {
    await store.close()
    await rm(folder, { recursive: true })
  }
  return { store, dispose }
}

storeContract({ name: 'SQLite', open })
inboxContract({ name: 'SQLite', open })
