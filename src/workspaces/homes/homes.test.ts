import assert from 'node:assert/strict'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { workspaceId } from '../../ids.ts'
import { createHomes } from './homes.ts'

const DAY_MS = 24 * 3600_000
const NOW_MS = 1_700_000_000_000

test('PL-2 the files of a deleted workspace are kept for 7 days and then removed', async (t) => {
  const dataDir = temporaryDir(t)
  const homes = createHomes(dataDir)
  const id = workspaceId()
  await homes.create(id, { runtime: 'claude-code' })
  await homes.writeConfig(id, 'name: a\n')
  await homes.trash(id, NOW_MS)
  assert.equal(homes.stamp(id), undefined)
  await homes.sweepTrash(NOW_MS + 7 * DAY_MS - 1)
  assert.deepEqual(await readdir(join(dataDir, 'trash')), [`${id.replace('ws_', 'ws-')}.${NOW_MS}`])
  await writeFile(join(dataDir, 'trash', 'other-file'), '')
  await homes.sweepTrash(NOW_MS + 7 * DAY_MS)
  assert.deepEqual(await readdir(join(dataDir, 'trash')), ['other-file'])
  await homes.trash(id, NOW_MS)
})

test('PL-3 the stamp changes with the file, is empty without it, and undefined without a folder', async (t) => {
  const homes = createHomes(temporaryDir(t))
  const id = workspaceId()
  assert.equal(homes.stamp(id), undefined)
  await homes.create(id, { runtime: 'claude-code' })
  assert.equal(homes.stamp(id), '')
  await homes.writeConfig(id, 'name: a\n')
  const first = homes.stamp(id)
  assert.equal(homes.stamp(id), first)
  await homes.writeConfig(id, 'name: b\n')
  assert.notEqual(homes.stamp(id), first)
  await rm(homes.configPath(id))
  assert.equal(homes.stamp(id), '')
})

test('only the owner may read the files of a workspace', { skip: process.platform === 'win32' }, async (t) => {
  const homes = createHomes(temporaryDir(t))
  const id = workspaceId()
  await homes.create(id, { runtime: 'claude-code' })
  await homes.writeConfig(id, 'name: a\n')
  assert.equal((await stat(homes.configPath(id))).mode & 0o777, 0o600)
})
