/** A PostgreSQL that is set up to forget: no acknowledged write is lost, or the store refuses to open. */

import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { sql } from '../../src/store/store.ts'
import { addNote, isUnavailable, openStore, readNote } from '../contracts/postgres/harness.ts'
import { startPlatformProcess } from '../harness/platform-process.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'

/** The server writes commits that did not wait for the disk only this often, so a kill forgets all of them. */
const LAZY_WRITER = 'wal_writer_delay=10s'

let server: TestPostgres
before(async () => {
  server = await startPostgres()
})
after(() => server.stop())

async function restart(settings: readonly string[]): Promise<void> {
  await server.stopServer()
  await server.startServer(settings)
}

async function run(url: string, text: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(text)
  await client.end()
}

async function writeAndKill(t: TestContext, url: string): Promise<void> {
  const store = await openStore(t, url)
  await store.write(() => sql("create table notes (id text primary key, body text not null default '')"))
  const ids = Array.from({ length: 50 }, (_, n) => `note ${n}`)
  for (const id of ids) await addNote(store, id)
  await server.kill()
  await server.startServer([LAZY_WRITER])
  const again = await openStore(t, url)
  for (const id of ids) assert.equal(await readNote(again, id), '', `${id} was acknowledged and is lost`)
}

test('RE-1 acknowledged writes survive a kill of a server whose default is synchronous_commit=off', async (t) => {
  await restart([LAZY_WRITER, 'synchronous_commit=off'])
  await writeAndKill(t, await server.url())
})

test('RE-1 acknowledged writes survive a kill where the role and the database turn synchronous_commit off', async (t) => {
  await restart([LAZY_WRITER])
  const url = await server.url()
  await run(url, 'alter role postgres set synchronous_commit = off')
  await run(url, `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)
  await writeAndKill(t, url)
  await run(url, 'alter role postgres reset synchronous_commit')
})

test('a server that waits for replicas keeps its setting', async (t) => {
  await restart(['synchronous_commit=remote_apply'])
  const store = await openStore(t, await server.url())
  const read = () => store.write(() => settingOf('synchronous_commit'))
  assert.equal(await read(), 'remote_apply')
})

function* settingOf(name: string) {
  const [row] = yield* sql<{ value: string }>('select current_setting($1) as value', [name])
  return row?.value
}

test('RE-1 a server with fsync=off is refused with one sentence, at start and when it comes back so', async (t) => {
  await restart([])
  const url = await server.url()
  const store = await openStore(t, url)
  await restart(['fsync=off'])
  const dataDir = temporaryDir(t)
  const platform = startPlatformProcess({ dataDir, database: url })
  t.after(() => platform.stop('SIGKILL'))
  await assert.rejects(platform.ready, /ended with 1/)
  const sentence = /has fsync=off, so a power failure would lose accepted messages: set fsync=on there/
  assert.match(platform.output(), sentence)
  await waitUntil(async () => {
    const error = await store.write(() => settingOf('fsync')).catch((reason: unknown) => reason)
    assert.ok(isUnavailable(error), 'a write to a server that forgets was accepted')
    return sentence.test((error as Error).message)
  }, 'the refusal names the setting')
})
