/** Operations that share a transaction: they run side by side, in order by key, and do not affect each other. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MoleculeError } from '../../../src/errors.ts'
import { type Store, sql, statement, together } from '../../../src/store/store.ts'
import { waitUntil } from '../../harness/wait.ts'
import { addNote, type GetServer, isUnavailable, openNodes, openStore, pause, readNote } from './harness.ts'

/** The transaction that a write ran in, as the server numbers it. */
function* transactionId() {
  const [row] = yield* sql<{ id: string }>('select pg_current_xact_id()::text as id')
  return row?.id
}

export function sharedTransactionTests(getServer: GetServer): void {
  describe('operations that share a transaction', () => {
    test('concurrent writes share a commit, with one key and with many', async (t) => {
      const [store] = await openNodes(t, getServer(), 1)
      // On a busy machine the 5 ms of a group may pass before the second write: retried.
      const share = (at: Store | undefined, keys: readonly string[]) =>
        waitUntil(async () => new Set(await Promise.all(keys.map((key) => at?.write(transactionId, key)))).size === 1)
      await share(store, ['a', 'a', 'a'])
      const one = await openStore(t, await getServer().url(), { lanes: 1 })
      await share(one, ['a', 'b', 'c'])
      const [keyed, keyless] = await Promise.all([one.write(transactionId, 'a'), one.write(transactionId)])
      assert.notEqual(keyed, keyless, 'a write without a key shares a transaction with a keyed write')
    })

    test('the writes of a key run in call order, among those of other keys', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`)
      for (const key of keys) await addNote(store, key)
      const append = (key: string, word: number) =>
        store.write(function* () {
          const [row] = yield* sql<{ body: string }>('select body from notes where id = $1 /*for update*/', [key])
          yield* sql('update notes set body = $2 where id = $1', [key, `${row?.body}${word},`])
        }, key)
      const writes = Array.from({ length: 30 }, (_, word) => keys.map((key) => append(key, word)))
      await Promise.all(writes.flat())
      const expected = `${Array.from({ length: 30 }, (_, word) => word).join(',')},`
      for (const key of keys) assert.equal(await readNote(store, key), expected)
    })

    for (const [title, fail] of [
      ['throws after it wrote', () => new Error('boom')],
      ['is rejected by the database', () => sql('insert into nowhere (id) values (1)')],
      ['has a text that cannot be stored', () => sql('insert into notes (id) values ($1)', ['\0'])],
    ] as const) {
      test(`only the operation that ${title} is rolled back`, async (t) => {
        const url = await getServer().url()
        const store = await openStore(t, url, { lanes: 1 })
        await store.write(() => sql('create table notes (id text primary key, body text)'))
        const failing = store.write(function* () {
          yield* sql('insert into notes (id) values ($1)', ['failing'])
          const failure = fail()
          if (failure instanceof Error) throw failure
          yield* failure
        }, 'b')
        const others = ['a', 'b', 'c'].map((key) =>
          store.write(() => sql('insert into notes (id, body) values ($1, $2)', [`kept ${key}`, key]), key),
        )
        await assert.rejects(failing)
        await Promise.all(others)
        assert.equal(await readNote(store, 'failing'), undefined)
        for (const key of ['a', 'b', 'c']) assert.equal(await readNote(store, `kept ${key}`), key)
      })
    }

    test('a text with U+0000 is an invalid request', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await assert.rejects(
        addNote(store, 'nul', 'a\0b'),
        (error) => (error as MoleculeError).code === 'invalid_request',
      )
    })

    test('an operation that fails at the commit is rolled back alone', async (t) => {
      const store = await openStore(t, await getServer().url(), { lanes: 1 })
      await store.write(() =>
        sql('create table pairs (id text primary key, other text references pairs (id) deferrable initially deferred)'),
      )
      const insert = (id: string, other: string) => () =>
        sql('insert into pairs (id, other) values ($1, $2) returning id', [id, other])
      const [lonely, paired] = await Promise.allSettled([
        store.write(insert('lonely', 'missing'), 'a'),
        store.write(insert('self', 'self'), 'b'),
      ])
      assert.equal((lonely as PromiseRejectedResult).reason.code, '23503')
      assert.equal(paired?.status, 'fulfilled')
    })

    test('statements of one step return their rows in order, and a step may be empty', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const rows = await store.write(function* () {
        yield* together([])
        return yield* together([
          statement('select 1 as n'),
          statement('insert into notes (id) values ($1) returning id', ['x']),
          statement('delete from notes'),
          statement('select sum(n) as total, true as yes from (values (1), ($1::bigint)) as v (n)', [2]),
        ])
      }, 'k')
      assert.deepEqual(rows, [[{ n: 1 }], [{ id: 'x' }], [], [{ total: 3, yes: 1 }]])
    })

    test('a text of a mebibyte is read as it was written', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const body = 'ä🧪'.repeat(2 ** 20 / 6)
      await addNote(store, 'large', body)
      assert.equal(await readNote(store, 'large'), body)
    })

    test('a read of several steps sees one snapshot, the first time and later', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await addNote(store, 'moving', '0')
      for (let round = 1; round <= 2; round++) {
        const reading = store.read(function* () {
          const [first] = yield* sql('select body from notes where id = $1', ['moving'])
          yield* pause(0.2)
          const [second] = yield* sql('select body from notes where id = $1', ['moving'])
          return [first?.['body'], second?.['body']]
        })
        await new Promise((resolve) => setTimeout(resolve, 100))
        await store.write(() => sql(`update notes set body = $1 where id = 'moving'`, [String(round)]))
        const [first, second] = await reading
        assert.equal(first, second)
      }
      assert.equal(await readNote(store, 'moving'), '2')
    })

    test('more than ten thousand waiting operations reject at once', async (t) => {
      const store = await openStore(t, await getServer().url(), { lanes: 1, readers: 1 })
      const one = () => sql('select 1 as one')
      for (const call of [(key: string) => store.write(one, key), () => store.read(one)]) {
        const calls = Array.from({ length: 10_002 }, (_, index) => call(`key ${index}`))
        const answers = await Promise.allSettled(calls)
        const refused = answers.filter((answer) => answer.status === 'rejected')
        assert.ok(refused.length > 0 && refused.length <= 2)
        assert.ok(refused.every(({ reason }) => isUnavailable(reason)))
      }
    })
  })
}
