import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createStateFolders } from './state-folders.ts'

test('GW-18 a channel has a folder of its own, closed to others, until the channel is removed', async (t) => {
  const root = join(await mkdtemp(join(tmpdir(), 'molecule-states-')), 'channels')
  t.after(() => rm(join(root, '..'), { recursive: true }))
  const folders = createStateFolders(root)
  await folders.keepOnly([])
  const [one, two] = [await folders.open('one'), await folders.open('two')]
  for (const path of [root, one]) assert.equal((await stat(path)).mode & 0o777, 0o700)
  await writeFile(join(one, 'state.json'), '{}')
  assert.equal(await folders.open('one'), one)
  await writeFile(join(root, 'README of the owner'), 'mine')
  await folders.keepOnly(['two', 'three'])
  assert.deepEqual((await readdir(root)).sort(), ['README of the owner', 'two'])
  assert.deepEqual(await readdir(two), [])
})
