/** Another user of the machine tries to read the data folder, or to own it. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { replyText, startPlatformFor } from '../harness/platform.ts'
import { startPlatformProcess } from '../harness/platform-process.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const OTHERS = 0o077
const NO_UMASK = ['/bin/sh', '-c', 'umask 000; exec "$@"', 'sh']
const hasUsers = { skip: process.getuid === undefined && 'this system has no user ids' }

/** Paths below the folder, and the folder itself, on which the group or others have a right. */
function openPaths(folder: string): string[] {
  const below = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return [folder, ...below].filter((path) => (statSync(path).mode & OTHERS) !== 0)
}

test('RE-9 PL-1 with a umask of 000 no file of the platform is open to others', hasUsers, async (t) => {
  const dataDir = join(temporaryDir(t), 'data')
  const platform = await startPlatformFor(t, { dataDir, wrapper: NO_UMASK })
  const id = await platform.exec('cat')
  assert.equal(replyText(await platform.send(id, 'hello')), 'hello')
  assert.deepEqual(openPaths(dataDir), [])
  for (const name of ['molecule.db', 'molecule.db-wal', 'molecule.log', 'lock'])
    assert.ok(existsSync(join(dataDir, name)))
})

test('RE-9 the umask of the platform stays as it was for the files of agents', hasUsers, async (t) => {
  const platform = await startPlatformFor(t, { wrapper: NO_UMASK })
  assert.equal(replyText(await platform.send(await platform.exec('umask'), '')), '0000\n')
})

test('RE-9 modes of an existing data folder are corrected at start, with a warning', hasUsers, async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatformFor(t, { dataDir })
  await first.stop('SIGKILL')
  const names = ['.', 'admin-token', 'molecule.db', 'molecule.db-wal', 'molecule.log', 'workspaces', 'processes']
  const paths = names.map((name) => join(dataDir, name)).filter((path) => existsSync(path))
  for (const path of paths) chmodSync(path, statSync(path).isDirectory() ? 0o755 : 0o644)
  const second = await startPlatformFor(t, { dataDir })
  assert.deepEqual(openPaths(dataDir), [])
  assert.match(second.output(), /other users of this machine could use these files/)
  assert.match(second.output(), /molecule\.db/)
})

/** Starts a platform that must refuse to start; what it prints. */
async function refusal(t: TestContext, dataDir: string): Promise<string> {
  const platform = startPlatformProcess({ dataDir })
  t.after(() => platform.stop('SIGKILL'))
  await assert.rejects(platform.ready, /ended with 1/)
  return platform.output()
}

test('RE-9 a data folder that belongs to another user is refused', hasUsers, async (t) => {
  const isRoot = process.getuid?.() === 0
  const dataDir = isRoot ? temporaryDir(t) : '/'
  if (isRoot) chownSync(dataDir, 65_534, 65_534)
  assert.match(await refusal(t, dataDir), /belongs to another user .*--data-dir/)
  assert.ok(!existsSync(join(dataDir, 'admin-token')))
})

test('RE-9 a store that another user planted in the data folder is refused', hasUsers, async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can give a file away')
  const dataDir = temporaryDir(t)
  writeFileSync(join(dataDir, 'molecule.db'), '')
  chownSync(join(dataDir, 'molecule.db'), 65_534, 65_534)
  assert.match(await refusal(t, dataDir), /molecule\.db belongs to another user/)
})

test('RE-9 a folder that others use for something else is refused and keeps its mode', hasUsers, async (t) => {
  const shared = join(temporaryDir(t), 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o1777)
  assert.match(await refusal(t, shared), /open to other users/)
  assert.equal(statSync(shared).mode & 0o7777, 0o1777)
  const project = join(temporaryDir(t), 'project')
  mkdirSync(project)
  chmodSync(project, 0o755)
  writeFileSync(join(project, 'package.json'), '{}')
  assert.match(await refusal(t, project), /chmod 700/)
  assert.equal(statSync(project).mode & 0o777, 0o755)
  assert.deepEqual(readdirSync(project), ['package.json'])
})
