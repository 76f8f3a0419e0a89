/** Several nodes on one database: they start together and write to the same rows. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { MoleculeError } from '../../../src/errors.ts'
import { type Store, sql } from '../../../src/store/store.ts'
import { addNote, type GetServer, openNodes, openStore, pause, readNote } from './harness.ts'

export function nodeTests(getServer: GetServer): void {
  describe('several nodes on one database', () => {
    test('nodes that start together on an empty database create the schema once', async (t) => {
      const url = await getServer().url()
      const stores = await Promise.all([1, 2, 3, 4].map(() => openStore(t, url)))
      for (const store of stores) {
        const rows = await store.read(() => sql<{ version: number }>('select version from schema_version order by 1'))
        assert.deepEqual(
          rows.map(({ version }) => version),
          rows.map((_, index) => index + 1),
        )
        assert.ok(rows.length > 0)
      }
    })

    test('PL-13 RE-9 a second node with the host id of a live one is refused; after its end, and under another id, it starts', async (t) => {
      const url = await getServer().url()
      // The wait for a dead holder takes no time here.
      let passedMs = 0
      const clock = { ...systemClock, monotonicMs: () => (passedMs += 1000) }
      const first = await openStore(t, url, { host: 'one' })
      await openStore(t, url, { host: 'other' })
      await assert.rejects(openStore(t, url, { host: 'one', clock }), {
        code: 'in_use',
        message: /a platform with the same host id \(one\) runs on this database.*--as copy/,
      })
      await first.close()
      await openStore(t, url, { host: 'one' })
    })

    test('a database from a newer Molecule is refused', async (t) => {
      const url = await getServer().url()
      const store = await openStore(t, url)
      await store.write(() => sql('insert into schema_version (version) values (9999)'))
      await assert.rejects(openStore(t, url), (error) => (error as MoleculeError).code === 'bad_config')
    })

    test('two nodes that lock rows in opposite order both succeed', async (t) => {
      const [left, right] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      await addNote(left, 'a')
      await addNote(left, 'b')
      let runs = 0
      const cross = (store: Store, ids: readonly string[]) =>
        store.write(function* () {
          runs += 1
          for (const id of ids) {
            yield* sql(`update notes set body = body || '+' where id = $1`, [id])
            yield* pause(0.2)
          }
        }, 'k')
      await Promise.all([cross(left, ['a', 'b']), cross(right, ['b', 'a'])])
      assert.ok(runs > 2, 'there was no lock conflict')
      assert.deepEqual([await readNote(left, 'a'), await readNote(left, 'b')], ['++', '++'])
    })

    test('a deadlock of operations that run alone is retried', async (t) => {
      const stores = (await openNodes(t, getServer(), 2)) as [Store, Store]
      await addNote(stores[0], 'a')
      await addNote(stores[0], 'b')
      // Raised by the test on the first runs: the deadlock detection of the database takes a second each time.
      const runs = [0, 0]
      const deadlock = (index: 0 | 1) =>
        stores[index].write(function* () {
          runs[index] = (runs[index] ?? 0) + 1
          if ((runs[index] ?? 0) < 4)
            yield* sql(`do $$ begin raise exception 'deadlock' using errcode = '40P01'; end $$`)
          yield* sql(`update notes set body = body || '+' where id = 'a'`)
        }, 'k')
      await Promise.all([deadlock(0), deadlock(1)])
      assert.deepEqual(runs, [4, 4])
      assert.equal(await readNote(stores[0], 'a'), '++')
    })

    test('a write that fails to serialize every time rejects with store_unavailable', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const hopeless = store.write(() => sql(`do $$ begin raise exception 'x' using errcode = '40001'; end $$`))
      await assert.rejects(hopeless, (error) => (error as MoleculeError).code === 'store_unavailable')
    })

    test('a lock that is not released is waited for once more, alone; then the write rejects', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      let runs = 0
      const stuck = store.write(() => {
        runs += 1
        return sql(`do $$ begin raise exception 'x' using errcode = '55P03'; end $$`)
      })
      await assert.rejects(stuck, (error) => (error as MoleculeError).code === 'store_unavailable')
      assert.equal(runs, 2)
    })

    test('two nodes that insert the same key: the second finds the row of the first', async (t) => {
      const stores = await openNodes(t, getServer(), 2)
      const admit = (store: Store, body: string) =>
        store.write(function* () {
          const [known] = yield* sql<{ body: string }>(`select body from notes where id = 'same'`)
          if (known !== undefined) return known.body
          yield* pause(0.1)
          yield* sql(`insert into notes (id, body) values ('same', $1)`, [body])
          return body
        }, 'k')
      const bodies = await Promise.all(stores.map((store, index) => admit(store, `node ${index}`)))
      assert.equal(new Set(bodies).size, 1)
    })

    test('a duplicate key rejects with the database error', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await addNote(store, 'taken')
      await assert.rejects(addNote(store, 'taken'), (error) => (error as { code?: string }).code === '23505')
    })

    test('nodes that increment the same rows lose no update', async (t) => {
      const stores = (await openNodes(t, getServer(), 3)) as [Store, Store, Store]
      const keys = Array.from({ length: 10 }, (_, index) => `counter-${index}`)
      for (const key of keys) await addNote(stores[0], key, '0')
      const count = (store: Store, key: string) =>
        store.write(function* () {
          const [row] = yield* sql<{ body: string }>('select body from notes where id = $1 /*for update*/', [key])
          yield* sql('update notes set body = $2 where id = $1', [key, String(Number(row?.body) + 1)])
        }, key)
      const all = stores.flatMap((store) => Array.from({ length: 20 }, () => keys.map((key) => count(store, key))))
      await Promise.all(all.flat())
      for (const key of keys) assert.equal(await readNote(stores[0], key), '60')
    })
  })
}
