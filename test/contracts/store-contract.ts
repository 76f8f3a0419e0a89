/** The contract of the store, run on every engine: what the layers above may rely on when they write one SQL text. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { MoleculeError } from '../../src/errors.ts'
import { type Store, sql } from '../../src/store/store.ts'

export interface StoreUnderTest {
  readonly name: string
  /** A fresh, empty store. */
  open(): Promise<{ store: Store; dispose(): Promise<void> }>
}

export function storeContract({ name, open }: StoreUnderTest): void {
  describe(`the store on ${name}`, () => {
    let store: Store
    let dispose: () => Promise<void>
    before(async () => {
      const opened = await open()
      store = opened.store
      dispose = opened.dispose
      await store.write(function* () {
        yield* sql('create table notes (id integer primary key, body text, raw bytea, at bigint)')
      })
    })
    after(() => dispose())

    const insert = (id: number, body: string) => () =>
      store.write(function* () {
        yield* sql('insert into notes (id, body, at) values ($1, $2, now_ms())', [id, body])
        return id
      })
    const bodies = (from: number, to: number) =>
      store.read(function* () {
        const rows = yield* sql<{ body: string }>('select body from notes where id between $1 and $2 order by id', [
          from,
          to,
        ])
        return rows.map(({ body }) => body)
      })

    test('a reader sees a transaction once its write has resolved', async () => {
      assert.equal(await insert(1, 'one')(), 1)
      assert.deepEqual(await bodies(1, 1), ['one'])
    })

    test('a throw rolls back only its own transaction, not those that share its commit', async () => {
      const boom = new Error('boom')
      const failing = store.write(function* () {
        yield* sql('insert into notes (id, body) values ($1, $2)', [11, 'lost'])
        throw boom
      })
      const results = await Promise.allSettled([insert(10, 'a')(), failing, insert(12, 'c')()])
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      )
      assert.equal((results[1] as PromiseRejectedResult).reason, boom)
      assert.deepEqual(await bodies(10, 12), ['a', 'c'])
    })

    test('an invalid statement fails only its own transaction', async () => {
      const broken = store.write(function* () {
        yield* sql('insert into nowhere (id) values (1)')
      })
      const [first, second] = await Promise.allSettled([broken, insert(20, 'stays')()])
      assert.equal(first?.status, 'rejected')
      assert.equal(second?.status, 'fulfilled')
    })

    test('a read that writes is refused and stores nothing', async () => {
      const writing = store.read(function* () {
        yield* sql(`insert into notes (id, body) values (25, 'written')`)
      })
      await assert.rejects(writing)
      assert.deepEqual(await bodies(25, 25), [])
    })

    test('each of a thousand concurrent transactions sees the one before', async () => {
      await insert(30, '0')()
      const add = () =>
        store.write(function* () {
          const [row] = yield* sql<{ body: string }>('select body from notes where id = 30 /*for update*/')
          yield* sql('update notes set body = $1 where id = 30', [String(Number(row?.body) + 1)])
        })
      await Promise.all(Array.from({ length: 1000 }, add))
      assert.deepEqual(await bodies(30, 30), ['1000'])
    })

    test('numbers, bytes, text with special characters and null are read as they were written', async () => {
      const raw = new Uint8Array([0, 1, 254, 255])
      const body = 'ünïcödé 🧪 \' " \\ $1 ?1'
      const [row] = await store.write(function* () {
        yield* sql('insert into notes (id, body, raw, at) values ($1, $2, $3, $4)', [40, body, raw, 2 ** 45])
        yield* sql('insert into notes (id, body) values ($1, $2)', [41, null])
        return yield* sql(
          'select body, raw, at, (select body from notes where id = 41) as empty from notes where id = 40',
        )
      })
      assert.equal(row?.['body'], body)
      assert.deepEqual(new Uint8Array(row?.['raw'] as Uint8Array), raw)
      assert.equal(row?.['at'], 2 ** 45)
      assert.equal(row?.['empty'], null)
    })

    test('now_ms() is an integer near the wall clock and never goes back', async () => {
      const times: number[] = []
      for (let attempt = 0; attempt < 20; attempt++) {
        const [row] = await store.write(function* () {
          return yield* sql<{ now: number }>('select now_ms() as now')
        })
        times.push(row?.now ?? 0)
      }
      assert.ok(times.every(Number.isInteger))
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      )
      assert.ok(Math.abs((times[0] ?? 0) - Date.now()) < 60_000)
    })

    test('a closed store rejects writes as unavailable, and closing twice is harmless', async () => {
      const other = await open()
      await other.store.close()
      await other.store.close()
      const late = other.store.write(function* () {
        yield* sql('select 1')
      })
      await assert.rejects(
        late,
        (error) => error instanceof MoleculeError && error.code === 'store_unavailable' && error.retryable,
      )
      await other.dispose()
    })
  })
}
