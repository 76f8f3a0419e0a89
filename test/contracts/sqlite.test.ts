import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock } from '../../src/clock.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { sql } from '../../src/store/store.ts'
import { inboxContract } from './inbox-contract.ts'
import { storeContract } from './store-contract.ts'
import { upgradeContract } from './upgrade-contract.ts'

async function open(prepare: (path: string) => void = () => undefined) {
  const folder = await mkdtemp(join(tmpdir(), 'molecule-sqlite-'))
  prepare(join(folder, 'molecule.db'))
  const store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
  const dispose = async () => {
    await store.close()
    await rm(folder, { recursive: true })
  }
  return { store, dispose }
}

storeContract({ name: 'SQLite', open })
inboxContract({ name: 'SQLite', open })
upgradeContract({
  name: 'SQLite',
  prepare: async (statements) => () =>
    open((path) => {
      const database = new DatabaseSync(path)
      database.exec(statements)
      database.close()
    }),
})

test('what arrives in the next turn of the event loop still shares the commit, but a group gathers for a moment only', async () => {
  const { store, dispose } = await open()
  await store.write(() => sql('create table notes (id integer primary key)'))
  const heard: string[] = []
  const write = async (id: number, name: string) => {
    await store.write(() => sql('insert into notes (id) values ($1)', [id]))
    heard.push(name)
  }
  const first = write(1, 'first')
  await nextTurn()
  heard.push('asked again')
  await Promise.all([first, write(2, 'second')])
  assert.deepEqual(heard, ['asked again', 'first', 'second'])
  // A crowd that never ends does not hold up the first of it.
  const crowd: Promise<void>[] = []
  for (let id = 3; !heard.includes('of a crowd'); id++) {
    crowd.push(write(id, 'of a crowd'))
    await nextTurn()
  }
  await Promise.all(crowd)
  await dispose()
})
