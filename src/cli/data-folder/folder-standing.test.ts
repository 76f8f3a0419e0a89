/** What a data folder is at start, by its files, by the flag, and by the answer of a person; and what is held in a copy. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { openTestStore } from '../../../test/harness/stores/sqlite-store.ts'
import { createChannels } from '../../doors/chat/store/channels.ts'
import { createPushConfigs } from '../../inbox/deliver/push-configs.ts'
import { openDataFolder, readRunningPlatform } from './data-folder.ts'
import { holdCopy, settleFolder } from './folder-standing.ts'
import { ensureHostId, writeHostFolder } from './host-id.ts'

const NO_KEYBOARD = { keyboard: undefined, err: () => undefined }

/** A folder that is at home, and a copy of it. */
function makeCopy(t: TestContext) {
  const folder = temporaryDir(t)
  const [original, copy] = [join(folder, 'original'), join(folder, 'copy')]
  mkdirSync(original)
  writeHostFolder(original, 'host-1')
  cpSync(original, copy, { recursive: true })
  const settle = (dataDir: string, as?: string) => settleFolder({ dataDir, as, terminal: NO_KEYBOARD })
  return { original, copy, settle }
}

test('PL-13 a folder is at home where it was made; elsewhere it was moved if its original is gone, and is a copy if not', async (t) => {
  const { original, copy, settle } = makeCopy(t)
  assert.deepEqual(await settle(original), { host: 'host-1', standing: 'same' })
  const copied = await settle(copy)
  assert.deepEqual([copied.standing, copied.formerPath, copied.formerHost], ['copy', original, 'host-1'])
  assert.notEqual(copied.host, 'host-1')
  writeFileSync(join(original, 'host-id'), 'host-2\n')
  assert.equal((await settle(copy)).standing, 'moved', 'another folder is in its place')
  rmSync(join(original, 'host-id'))
  mkdirSync(join(original, 'host-id'))
  assert.equal((await settle(copy)).standing, 'copy', 'the original cannot be read')
  rmSync(original, { recursive: true })
  assert.deepEqual(await settle(copy), { host: 'host-1', standing: 'moved', formerPath: original })
  writeFileSync(original, '')
  assert.equal((await settle(copy)).standing, 'moved', 'a file is in its place')
})

test('PL-13 a folder of another machine is a copy; one without a machine or from an earlier version is at home', async (t) => {
  const { original, settle } = makeCopy(t)
  const path = join(original, 'host-place.json')
  const place = JSON.parse(readFileSync(path, 'utf8'))
  const elsewhere = { ...place, machine: 'elsewhere' }
  writeFileSync(path, JSON.stringify(elsewhere))
  assert.equal((await settle(original)).standing, 'same', 'a volume of another container')
  writeFileSync(path, JSON.stringify({ ...elsewhere, inode: '1:1' }))
  assert.equal((await settle(original)).standing, place.machine === '' ? 'same' : 'copy')
  assert.equal((await settle(original, 'move')).host, 'host-1')
  writeFileSync(path, JSON.stringify({ ...place, machine: '' }))
  assert.equal((await settle(original)).standing, 'same')
  for (const text of ['{"path": 7', JSON.stringify({ ...place, host: 'other', path: '/elsewhere' })]) {
    writeFileSync(path, text)
    assert.equal((await settle(original)).standing, 'same')
  }
  rmSync(path)
  assert.equal((await settle(original)).standing, 'same')
})

test('PL-13 --as decides, but not against a platform that runs on the original, and a folder at home was not moved', async (t) => {
  const { original, copy, settle } = makeCopy(t)
  assert.equal((await settle(copy, 'move')).standing, 'moved')
  assert.equal((await settle(original, 'move')).standing, 'same')
  assert.equal((await settle(original, 'copy')).standing, 'copy')
  await assert.rejects(settle(copy, 'other'), { code: 'invalid_request', message: /copy or move/ })
  const lock = openDataFolder(original)
  t.after(() => lock.release())
  await assert.rejects(settle(copy, 'move'), { code: 'in_use', message: /--as copy/ })
})

test('PL-13 at a terminal a person is asked what the folder is; any other answer is a copy', async (t) => {
  const { copy } = makeCopy(t)
  for (const [answer, standing] of [
    ['move', 'moved'],
    ['copy', 'copy'],
    ['what?', 'copy'],
  ] as const) {
    const keyboard = new PassThrough()
    let shown = ''
    const err = (text: string) => {
      shown += text
      keyboard.write(`${answer}\n`)
    }
    const terminal = { keyboard: keyboard as unknown as NodeJS.ReadStream, err }
    assert.equal((await settleFolder({ dataDir: copy, as: undefined, terminal })).standing, standing)
    assert.match(shown, /Is it a copy, or was the folder moved here\? \[copy\/move\]/)
  }
})

test('PL-13 a copied state folder of bridges gets an id of its own, once', (t) => {
  const { original, copy } = makeCopy(t)
  assert.equal(ensureHostId(original), 'host-1')
  const id = ensureHostId(copy)
  assert.notEqual(id, 'host-1')
  assert.equal(ensureHostId(copy), id)
})

test('PL-13 the announcement of a running platform does not count in a copy of its folder', (t) => {
  const folder = temporaryDir(t)
  const [original, copy] = [join(folder, 'original'), join(folder, 'copy')]
  const lock = openDataFolder(original)
  t.after(() => lock.release())
  lock.announce({ pid: process.pid, url: 'http://127.0.0.1:1', startedAt: 'now', startTime: '1', bootId: 'b' })
  cpSync(original, copy, { recursive: true })
  assert.equal(readRunningPlatform(original)?.pid, process.pid)
  assert.equal(readRunningPlatform(copy), undefined)
})

test('RE-9 in a copy no bot is connected before its channel is added again, and no webhook is called', async (t) => {
  const { store, addWorkspace } = openTestStore(t)
  const workspaceId = await addWorkspace()
  const [channels, configs] = [createChannels(store), createPushConfigs(store, 'here')]
  const channel = { name: 'bot', kind: 'discord', token: 'secret', settings: {} }
  await channels.add(channel)
  const config = { id: 'hook', taskId: 'task', url: 'https://example.org' }
  await configs.put({ workspaceId, version: '1.0', config, afterSeq: 0 })
  await holdCopy(store)
  assert.equal(await channels.claim('bot', 'here.1', 1000), false)
  assert.match((await channels.get('bot')).problem ?? '', /is a copy.*add the channel again/)
  assert.deepEqual(await configs.claim(10), [])
  assert.match((await configs.list(workspaceId, 'task'))[0]?.failed ?? '', /is a copy/)
  await channels.add(channel, { replace: true })
  assert.equal((await channels.get('bot')).problem, undefined)
  assert.equal(await channels.claim('bot', 'here.1', 1000), true)
})
