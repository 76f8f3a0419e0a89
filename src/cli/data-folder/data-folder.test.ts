import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { openDataFolder, readRunningPlatform } from './data-folder.ts'

const MODULE = new URL('./data-folder.ts', import.meta.url).href

/** Starts a process that holds the folder; resolves once it does. */
async function holder(t: TestContext, path: string): Promise<ChildProcess> {
  const script = `
    const { openDataFolder } = await import(${JSON.stringify(MODULE)})
    const folder = openDataFolder(${JSON.stringify(path)})
    folder.announce({ pid: process.pid, url: 'http://127.0.0.1:4711', startedAt: new Date().toISOString() })
    process.stdout.write('held')
    setInterval(() => folder, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  assert.equal(String(await once(child.stdout, 'data')), 'held')
  return child
}

test('PL-13 a second process is refused; the error names the holder and what to do', async (t) => {
  const path = temporaryDir(t)
  const child = await holder(t, path)
  assert.throws(() => openDataFolder(path), {
    code: 'in_use',
    message: new RegExp(`process ${child.pid} at http://127.0.0.1:4711.*--data-dir`),
  })
})

test('PL-13 kill -9 of the holder frees the folder at once; the next holder removes its announcement', async (t) => {
  const path = temporaryDir(t)
  const child = await holder(t, path)
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.ok(readRunningPlatform(path), 'a killed process leaves its announcement')
  const folder = openDataFolder(path)
  t.after(() => folder.release())
  assert.equal(readRunningPlatform(path), undefined)
})

test('PL-13 a holder without an announcement is reported as starting or stopping', (t) => {
  const path = temporaryDir(t)
  const folder = openDataFolder(path)
  t.after(() => folder.release())
  assert.throws(() => openDataFolder(path), { code: 'in_use', message: /is starting or stopping/ })
})

test('a released folder is free and has no announcement; a second release does nothing', (t) => {
  const path = temporaryDir(t)
  const first = openDataFolder(path)
  const platform = { pid: 1, url: 'http://x', startedAt: 'now', startTime: '17', bootId: 'b' }
  first.announce(platform)
  assert.deepEqual(readRunningPlatform(path), platform)
  assert.equal(statSync(join(path, 'platform.json')).mode & 0o777, 0o600)
  first.release()
  first.release()
  assert.equal(readRunningPlatform(path), undefined)
  openDataFolder(path).release()
  assert.deepEqual(readdirSync(path), ['lock'])
})

test('a missing folder is created for its owner only; if that fails, the error names the flag', (t) => {
  const path = join(temporaryDir(t), 'deep', 'data')
  const folder = openDataFolder(path)
  t.after(() => folder.release())
  assert.equal(statSync(path).mode & 0o777, 0o700)
  assert.deepEqual(folder.mended, [])
  assert.ok(existsSync(join(path, 'lock')))
  assert.throws(() => openDataFolder('/dev/null/data'), { code: 'bad_config', message: /--data-dir/ })
})
