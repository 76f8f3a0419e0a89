/** The database goes away: every caller is told at once and clearly, and it comes back by itself. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { MoleculeError } from '../../../src/errors.ts'
import type { Log } from '../../../src/log.ts'
import { type Store, sql } from '../../../src/store/store.ts'
import { addNote, type GetServer, isUnavailable, openNodes, openStore, pause, readNote } from './harness.ts'

/** Until it works again; every failure on the way must be the clear one. */
async function untilBack(store: Store): Promise<number> {
  const startMs = performance.now()
  for (let look = 0; ; look++) {
    try {
      await addNote(store, `back ${look} ${Math.random()}`)
      await readNote(store, 'back')
      return performance.now() - startMs
    } catch (error) {
      assert.ok(isUnavailable(error), inspect(error))
      assert.ok(performance.now() - startMs < 10_000, 'it did not come back')
      await delay(20)
    }
  }
}

export function outageTests(getServer: GetServer): void {
  describe('a database that goes away', () => {
    test('what is under way and what comes is told so, at once, and it recovers alone', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      await addNote(store, 'kept')
      const underWay = [
        store.write(() => pause(20), 'k'),
        store.read(() => pause(20)),
        store.write(() => sql(`insert into notes (id) values ('never')`), 'k'),
      ]
      const told = Promise.allSettled(underWay)
      await delay(100)
      await getServer().stopServer()
      const results = await told
      for (const result of results.slice(0, 2)) assert.ok(isUnavailable((result as PromiseRejectedResult).reason))
      for (let look = 0; look < 3; look++) {
        const startMs = performance.now()
        await assert.rejects(addNote(store, `lost ${look}`), isUnavailable)
        await assert.rejects(readNote(store, 'kept'), isUnavailable)
        assert.ok(performance.now() - startMs < 3000)
        await delay(150)
      }
      await getServer().startServer()
      assert.ok((await untilBack(store)) < 5000)
      assert.equal(await readNote(store, 'kept'), '')
      assert.equal(await readNote(store, 'lost 0'), undefined)
    })

    test('what was acknowledged survives a power cut', async (t) => {
      const [store] = (await openNodes(t, getServer(), 1)) as [Store]
      const acknowledged: number[] = []
      const writing = Array.from({ length: 300 }, async (_, index) => {
        await delay(index)
        await store.write(() => sql('insert into notes (id) values ($1)', [String(index)]), `key ${index % 7}`)
        acknowledged.push(index)
      })
      const settled = Promise.allSettled(writing)
      await delay(150)
      await getServer().kill()
      await settled
      await getServer().startServer()
      await untilBack(store)
      assert.ok(acknowledged.length > 10)
      for (const index of acknowledged) assert.equal(await readNote(store, String(index)), '')
    })

    test('a connection that is cut in its commit is told as unavailable', async (t) => {
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
      await untilBack(store)
    })

    test('a server that says nothing is given up', async (t) => {
      // What takes thirty seconds otherwise.
      const hasty: Clock = {
        ...systemClock,
        after: (delayMs, callback) => systemClock.after(delayMs === 30_000 ? 300 : delayMs, callback),
      }
      const store = await openStore(t, await getServer().url(), { clock: hasty })
      await assert.rejects(
        store.write(() => pause(2)),
        /did not answer within/,
      )
      await store.write(() => sql('create table notes (id text primary key, body text)'), 'another lane')
      await untilBack(store)
    })

    test('an address where nobody answers is told within seconds', async (t) => {
      const { port, close } = await silentServer(t)
      const startMs = performance.now()
      const opening = openStore(t, `postgres://user:secretword@127.0.0.1:${port}/db`)
      await assert.rejects(opening, /PostgreSQL at 127\.0\.0\.1:\d+ did not answer within 2000 ms/)
      assert.ok(performance.now() - startMs < 3000)
      close()
    })

    test('no error and no line of the log holds a password', async (t) => {
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
      const words = inspect(lines, { depth: 20, showHidden: true })
      assert.ok(!words.includes('secretword') && !words.includes(password))
    })

    test('closing while the database is away ends, and takes nothing more', async (t) => {
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

/** Takes connections and never says a word, as a broken middle does. */
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
