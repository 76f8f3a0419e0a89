/** The contracts of store, inbox and memory on SQLite, and its group commit. */
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
import { chatStoreContract } from './chat-store-contract.ts'
import { inboxContract } from './inbox-contract.ts'
import { memoryContract } from './memory-contract.ts'
import { scheduleContract } from './schedule-contract.ts'
import { storeContract } from './store-contract.ts'
import { tokenContract } from './token-contract.ts'
import { upgradeContract } from './upgrade-contract.ts'
import { workspaceContract } from './workspace-contract.ts'

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
memoryContract({ name: 'SQLite', open })
scheduleContract({ name: 'SQLite', open })
chatStoreContract({ name: 'SQLite', open })
workspaceContract({ name: 'SQLite', open })
tokenContract({ name: 'SQLite', open })
upgradeContract({
  name: 'SQLite',
  prepare: async (statements) => () =>
    open((path) => {
      const database = new DatabaseSync(path)
      database.exec(statements)
      database.close()
    }),
})

test('an operation of the next turn of the event loop shares the commit, but a group waits only for a moment', async () => {
  const { store, dispose } = await open()
  await store.write(() => sql('create table notes (id integer primary key)'))
  const order: string[] = []
  const write = async (id: number, name: string) => {
    await store.write(() => sql('insert into notes (id) values ($1)', [id]))
    order.push(name)
  }
  const first = write(1, 'first')
  await nextTurn()
  order.push('second call')
  await Promise.all([first, write(2, 'second')])
  assert.deepEqual(order, ['second call', 'first', 'second'])
  // Without the limit, an endless stream of operations would delay the first one for ever.
  const streamed: Promise<void>[] = []
  for (let id = 3; !order.includes('streamed'); id++) {
    streamed.push(write(id, 'streamed'))
    await nextTurn()
  }
  await Promise.all(streamed)
  await dispose()
})

test('RE-3 a large write that does not fit on the disk does not take the small writes of its group with it', async () => {
  const { store, dispose } = await open()
  await store.write(() => sql('create table notes (id integer primary key, body text)'))
  const [{ page_count: pages } = {}] = await store.write(() => sql('pragma page_count'))
  // SQLite reports this limit as a full disk.
  await store.write(() => sql(`pragma max_page_count = ${Number(pages) + 10}`))
  const write = (id: number, length: number) =>
    store.write(() => sql('insert into notes (id, body) values ($1, $2)', [id, 'x'.repeat(length)]))
  const results = await Promise.allSettled([write(1, 10), write(2, 1_000_000), write(3, 10)])
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? 'stored' : result.reason.message)),
    ['stored', 'the store is unavailable: the disk is full', 'stored'],
  )
  const rows = await store.read(() => sql('select id from notes order by id'))
  assert.deepEqual(rows, [{ id: 1 }, { id: 3 }])
  await dispose()
})
