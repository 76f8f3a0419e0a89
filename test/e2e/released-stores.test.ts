/**
 * Stores of every released schema, opened by this program on both engines: they answer as they did, and a message that was
 * accepted then is not run again.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Client } from 'pg'
import { type PlatformUnderTest, replyText, startPlatformFor } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { type ReleasedStore, releasedStores } from '../released/released-store.ts'

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

type OpenReleased = (t: TestContext, store: ReleasedStore) => Promise<PlatformUnderTest>

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-released-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const ENGINES: Readonly<Record<string, OpenReleased>> = {
  async SQLite(t, store) {
    const dataDir = temporaryFolder(t)
    const database = new DatabaseSync(join(dataDir, 'molecule.db'))
    database.exec(store.statements('sqlite', dataDir))
    database.close()
    return await startPlatformFor(t, { dataDir })
  },
  async PostgreSQL(t, store) {
    const dataDir = temporaryFolder(t)
    const url = await postgres.url()
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(store.statements('postgres', dataDir))
    await client.end()
    return await startPlatformFor(t, { dataDir, database: url })
  },
}

for (const [engine, open] of Object.entries(ENGINES)) {
  describe(`a released store on ${engine}`, () => {
    for (const [name, store] of releasedStores()) {
      test(`RE-6 IN-10 ${name}: every list and view answers as before, and repeated messages get their task`, async (t) => {
        const platform = await open(t, store)
        for (const { get: path, status, has } of store.answers) {
          const answer = await platform.request('GET', path)
          assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`)
          const text = JSON.stringify(answer.body)
          for (const fact of has) assert.ok(text.includes(fact), `${path} no longer shows ${fact}: ${text}`)
        }
        for (const { workspaceId, message, taskId, reply } of store.messages) {
          const { body } = await platform.rpc(workspaceId, 'SendMessage', { message })
          const task = body.result?.task ?? assert.fail(JSON.stringify(body))
          assert.deepEqual([task.id, replyText(task) ?? ''], [taskId, reply], 'a repeated message ran again')
        }
        const [first] = store.messages
        const next = { contextId: 'monday', messageId: 'after the upgrade' }
        const task = await platform.send(first?.workspaceId ?? '', 'more', next)
        assert.equal(replyText(task), 'written: more')
      })
    }
  })
}
