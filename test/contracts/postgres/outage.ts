/** An outage of the database: every call rejects at once with a clear error, and the store recovers by itself. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { Log } from '../../../src/log.ts'
import { type Store, sql } from '../../../src/store/store.ts'
import { waitUntil } from '../../harness/wait.ts'
import { addNote, type GetServer, isUnavailable, openNodes, openStore, pause, readNote } from './harness.ts'

/** Retries until the store works again. Every failure before must be `store_unavailable`. Returns the time it took. */
async function waitForRecovery(store: Store): Promise<number> {
  const startMs = performance.now()
  for (let attempt = 0; ; attempt++) {
    try {
      await addNote(store, `back ${attempt} ${Math.random()}`)
      await readNote(store, 'back')
      return performance.now() - startMs
    } catch (error) {
      assert.ok(isUnavailable(error), inspect(error))
      assert.ok(performance.now() - startMs < 10_000, 'the store did not recover')
      await delay(20)
    }
  }
}

export function outageTests(getServer: GetServer): void {
  describe('a database outage', () => {
    test('running and new calls reject at once, and the store recovers by itself', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await addNote(store, 'kept')
      const running = [
        store.write(() => pause(20), 'k'),
        store.read(() => pause(20)),
        store.write(() => sql(`insert into notes (id) values ('never')`), 'k'),
      ]
      const settled = Promise.allSettled(running)
      await delay(100)
      await getServer().stopServer()
      const results = await settled
      for (const result of results.slice(0, 2)) assert.ok(isUnavailable((result as PromiseRejectedResult).reason))
      for (let attempt = 0; attempt < 3; attempt++) {
        const startMs = performance.now()
        await assert.rejects(addNote(store, `lost ${attempt}`), isUnavailable)
        await assert.rejects(readNote(store, 'kept'), isUnavailable)
        assert.ok(performance.now() - startMs < 3000)
        await delay(150)
      }
      await getServer().startServer()
      assert.ok((await waitForRecovery(store)) < 5000)
      assert.equal(await readNote(store, 'kept'), '')
      assert.equal(await readNote(store, 'lost 0'), undefined)
    })

    test('acknowledged writes survive a kill of the server', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const acknowledged: number[] = []
      const writing = Array.from({ length: 300 }, async (_, index) => {
        await delay(index)
        await store.write(() => sql('insert into notes (id) values ($1)', [String(index)]), `key ${index % 7}`)
        acknowledged.push(index)
      })
      const settled = Promise.allSettled(writing)
      await waitUntil(() => acknowledged.length > 10, 'writes are acknowledged')
      await getServer().kill()
      await settled
      await getServer().startServer()
      await waitForRecovery(store)
      for (const index of acknowledged) assert.equal(await readNote(store, String(index)), '')
    })

    test('a connection that is lost during its commit rejects with store_unavailable', async (t) => {
      const [store, other] = (await openNodes(t, getServer(), 2)) as [Store, Store]
      await store.write(function* () {
        yield* sql(`create function slowly() returns trigger language plpgsql as
          $$ begin perform pg_sleep(20); return null; end $$`)
        yield* sql(`create constraint trigger slow after insert on notes deferrable initially deferred
          for each row execute function slowly()`)
      })
      const cut = assert.rejects(addNote(store, 'cut'), isUnavailable)
      await delay(300)
      const ended = await other.read(() =>
        sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
             and query = 'commit' and state = 'active'`),
      )
      assert.equal(ended.length, 1)
      await cut
      await other.write(() => sql('drop trigger slow on notes'))
      await waitForRecovery(store)
    })

    test('a server that does not answer is given up', async (t) => {
      // Shortens the answer timeout of thirty seconds.
      const fastClock: Clock = {
        ...systemClock,
        after: (delayMs, callback) => systemClock.after(delayMs === 30_000 ? 300 : delayMs, callback),
      }
      const store = await openStore(t, await getServer().url(), { clock: fastClock })
      await assert.rejects(
        store.write(() => pause(2)),
        /did not answer within/,
      )
      await store.write(() => sql('create table notes (id text primary key, body text)'), 'another lane')
      await waitForRecovery(store)
    })

    test('an address without an answer rejects within seconds', async (t) => {
      const { port, close } = await silentServer(t)
      const startMs = performance.now()
      const opening = openStore(t, `postgres://user:secretword@127.0.0.1:${port}/db`)
      await assert.rejects(opening, /PostgreSQL at 127\.0\.0\.1:\d+ did not answer within 2000 ms/)
      assert.ok(performance.now() - startMs < 3000)
      close()
    })

    test('no error and no log line contains a password', async (t) => {
      const lines: unknown[] = []
      const note = (fields: object, message: string) => void lines.push(fields, message)
      const log: Log = { debug: note, info: note, warn: note, error: note }
      const good = await getServer().url()
      const { password } = new URL(good)
      const addresses = {
        'postgres://user:secretword@127.0.0.1:1/db': 'store_unavailable',
        'postgres://user:secretword@no-such-host.invalid/db': 'store_unavailable',
        [good.replace(password, 'secretword')]: 'store_unavailable',
        [good.replace(/test_\w+$/, 'no_such_database')]: 'store_unavailable',
        'postgres://user:secretword@host:99999999/db': 'bad_config',
        'mysql://user:secretword@host/db': 'bad_config',
      }
      for (const [address, code] of Object.entries(addresses)) {
        await assert.rejects(openStore(t, address, { log }), (error) => {
          assert.ok(error instanceof MoleculeError && error.code === code, inspect(error))
          lines.push(error)
          return true
        })
      }
      const store = await openStore(t, good, { log })
      await store.read(() => sql('select 1 as one'))
      await getServer().stopServer()
      await assert.rejects(
        store.read(() => sql('select 1 as one')),
        isUnavailable,
      )
      await delay(300)
      await getServer().startServer()
      assert.ok(lines.length > 10)
      const text = inspect(lines, { depth: 20, showHidden: true })
      assert.ok(!text.includes('secretword') && !text.includes(password))
    })

    test('close during an outage ends, and later calls reject', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await getServer().stopServer()
      const late = Promise.allSettled([addNote(store, 'late'), readNote(store, 'late')])
      await store.close()
      for (const { status } of await late) assert.equal(status, 'rejected')
      await assert.rejects(readNote(store, 'late'), isUnavailable)
      await getServer().startServer()
    })
  })
}

/** Accepts connections and never sends a byte, like a broken proxy. */
async function silentServer(t: TestContext): Promise<{ port: number; close(): void }> {
  const silent = createServer()
  const sockets = new Set<{ destroy(): unknown }>()
  silent.on('connection', (socket) => void sockets.add(socket))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const close = () => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
  t.after(close)
  return { port: (silent.address() as { port: number }).port, close }
}
