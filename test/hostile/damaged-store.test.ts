/** A store that is damaged or gone: the platform refuses with the file and the way back, and never goes on accepting. */

import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type PlatformUnderTest, replyText, startPlatform } from '../harness/platform.ts'
import { startPlatformProcess } from '../harness/platform-process.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

/** A data folder whose platform answered some messages and was stopped. */
async function usedFolder(t: TestContext) {
  const dataDir = temporaryDir(t)
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const created = { name: 'echo', runtime: 'mock', runtime_config: { reply: '%s' } }
  const { body } = await platform.request('POST', '/workspaces', created)
  for (let n = 1; n <= 5; n++) assert.equal(replyText(await platform.send(body.id, `before ${n}`)), `before ${n}`)
  assert.equal(await platform.stop(), 0)
  return { dataDir, path: join(dataDir, 'molecule.db'), workspaceId: body.id as string }
}

/** Overwrites the root page of a table or an index. */
function damage(path: string, name: string): void {
  const database = new DatabaseSync(path)
  const { rootpage } = database.prepare('select rootpage from sqlite_master where name = ?').get(name) as {
    rootpage: number
  }
  const { page_size: bytes } = database.prepare('pragma page_size').get() as { page_size: number }
  database.close()
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(bytes, 0xff), 0, bytes, (rootpage - 1) * bytes)
  closeSync(file)
}

async function refusalOfStart(t: TestContext, dataDir: string): Promise<string> {
  const platform = startPlatformProcess({ dataDir })
  t.after(() => platform.stop('SIGKILL'))
  await assert.rejects(platform.ready, /ended with 1/)
  return platform.output()
}

async function readyStatus(platform: PlatformUnderTest): Promise<[number, string]> {
  const { status, body } = await platform.request('GET', '/ready')
  return [status, body.reason]
}

test('RE-10 a damaged page is latched: no message is accepted, /ready refuses, the log names the file and the way back', async (t) => {
  const { dataDir, path, workspaceId } = await usedFolder(t)
  // Only admission reads this index, so the platform starts.
  damage(path, 'messages_dedupe')
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const other = { name: 'other', runtime: 'mock' }
  const send = () =>
    platform.rpc(workspaceId, 'SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } })
  for (let n = 1; n <= 2; n++) {
    const { status, body } = await send()
    assert.equal(status, 503, JSON.stringify(body))
    assert.equal(body.error.data[0].reason, 'STORE_DAMAGED')
    assert.ok(!JSON.stringify(body).includes(dataDir), 'callers do not see the path')
  }
  // A write to pages that are whole is refused too.
  const refused = await platform.request('POST', '/workspaces', other)
  assert.deepEqual([refused.status, refused.body.error.code], [503, 'store_damaged'])
  const [status, reason] = await readyStatus(platform)
  assert.equal(status, 503)
  assert.match(reason, /^the store is damaged and accepts nothing/)
  assert.equal((await platform.request('GET', `/workspaces/${workspaceId}`)).status, 200)
  const log = readFileSync(join(dataDir, 'molecule.log'), 'utf8')
  assert.ok(log.includes(`the store ${path} is damaged`) && log.includes('.recover'), log)
  assert.equal(await platform.stop(), 0)
})

test('RE-10 after a crash the start checks the pages and refuses a damaged store with its path and the way back', async (t) => {
  const { dataDir, path } = await usedFolder(t)
  damage(path, 'messages_dedupe')
  // What a crash leaves: SQLite removes its write-ahead log only on a proper close.
  writeFileSync(`${path}-wal`, '')
  const output = await refusalOfStart(t, dataDir)
  assert.match(output, new RegExp(`the store ${path} is damaged`))
  assert.match(output, /put back the files of your last backup.*\.recover/)
  writeFileSync(path, 'this is no database at all'.repeat(1000))
  assert.match(
    await refusalOfStart(t, dataDir),
    new RegExp(`the store ${path} is damaged \\(file is not a database\\)`),
  )
})

test('RE-10 a crashed store that is whole is checked and used', async (t) => {
  const { dataDir, path, workspaceId } = await usedFolder(t)
  writeFileSync(`${path}-wal`, '')
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  assert.equal(replyText(await platform.send(workspaceId, 'after')), 'after')
  assert.match(readFileSync(join(dataDir, 'molecule.log'), 'utf8'), /its pages were checked and are whole/)
  assert.deepEqual(await readyStatus(platform), [200, undefined])
})

/** A larger file is not checked before the start. The bytes after its last page take no space on the disk. */
const LARGE_BYTES = 1.25 * 1024 ** 3

test('RE-10 a crashed store that is too large to check at start is checked in the background, and damage is latched', async (t) => {
  const { dataDir, path, workspaceId } = await usedFolder(t)
  // No request of this test reads this index.
  damage(path, 'deliveries_task')
  truncateSync(path, LARGE_BYTES)
  writeFileSync(`${path}-wal`, '')
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const isDamaged = async () => {
    const [status, reason] = await readyStatus(platform)
    return status === 503 && reason.startsWith('the store is damaged')
  }
  await waitUntil(isDamaged, 'the check in the background finds the damage')
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const { status, body } = await platform.rpc(workspaceId, 'SendMessage', { message })
  assert.deepEqual([status, body.error.data[0].reason], [503, 'STORE_DAMAGED'])
  assert.ok(readFileSync(join(dataDir, 'molecule.log'), 'utf8').includes(`the store ${path} is damaged`))
})

test('RE-10 a large crashed store that is whole is used while it is checked', async (t) => {
  const { dataDir, path, workspaceId } = await usedFolder(t)
  truncateSync(path, LARGE_BYTES)
  writeFileSync(`${path}-wal`, '')
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  assert.equal(replyText(await platform.send(workspaceId, 'after')), 'after')
  const log = () => readFileSync(join(dataDir, 'molecule.log'), 'utf8')
  await waitUntil(() => log().includes('the pages of the store were checked and are whole'), 'the check ends')
  assert.deepEqual(await readyStatus(platform), [200, undefined])
  assert.equal(await platform.stop(), 0)
})

test('RE-10 an empty store beside workspace folders is refused, every time, and the old store works when it is back', async (t) => {
  const { dataDir, path, workspaceId } = await usedFolder(t)
  const kept = readFileSync(path)
  rmSync(path)
  for (let n = 1; n <= 2; n++) {
    const output = await refusalOfStart(t, dataDir)
    assert.match(output, new RegExp(`the store ${path} is empty, but .*/workspaces has the folders of 1 workspace`))
  }
  writeFileSync(path, kept)
  const platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  assert.equal(replyText(await platform.send(workspaceId, 'after')), 'after')
})
