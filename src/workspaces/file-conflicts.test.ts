import assert from 'node:assert/strict'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openTestStore } from '../../test/harness/stores/sqlite-store.ts'
import { silentLog } from '../log.ts'
import { createWorkspaceConfigs } from './config/workspace-configs.ts'
import { createHomes } from './homes/homes.ts'
import { createWorkspaceFiles } from './workspace-files.ts'
import { createWorkspaces } from './workspaces.ts'

test('RE-4 a folder or a file that comes into the way of a file while it is written is named, and not replaced', async (t) => {
  const { store, folder } = openTestStore(t)
  const homes = createHomes(folder)
  const configs = createWorkspaceConfigs({ store, homes, log: silentLog, check: async () => ({ ok: true }) })
  const files = createWorkspaceFiles({ store, homes, configs })
  const { id } = await createWorkspaces({ store, homes, configs }).create({ name: 'n', runtime: 'mock' })
  const home = homes.path(id)
  // The write counts these between its check of the path and the write itself.
  await Promise.all(Array.from({ length: 900 }, (_, n) => writeFile(join(home, `f${n}`), '')))
  const during = async (path: string, meanwhile: () => Promise<unknown>) => {
    const writing = files.write(id, path, Buffer.from('x'))
    for (let looks = 0; looks < 20; looks++) await stat(home)
    await meanwhile()
    await assert.rejects(writing, {
      code: 'invalid_request',
      message: new RegExp(`${path}.* is a folder|${path} .*not a folder`),
    })
  }
  await during('folder', () => mkdir(join(home, 'folder')))
  await during('one/x', () => writeFile(join(home, 'one'), 'kept'))
  await during('two/x/y', () => writeFile(join(home, 'two'), 'kept'))
  assert.ok((await stat(join(home, 'folder'))).isDirectory())
  for (const name of ['one', 'two']) assert.equal(await readFile(join(home, name), 'utf8'), 'kept')
})
