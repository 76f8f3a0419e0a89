import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../../../../test/harness/process-harness.ts'
import { createPrivateFolder } from './private-folder.ts'

test('only this user can read the files, and they are removed with their folder', (t) => {
  const parent = temporaryDir(t)
  const folder = createPrivateFolder(parent)
  assert.deepEqual(readdirSync(parent), [])
  const file = folder.write('a.md', 'secret')
  assert.equal(readFileSync(file, 'utf8'), 'secret')
  assert.deepEqual([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777], [0o600, 0o700])
  folder.remove()
  folder.remove()
  assert.deepEqual(readdirSync(parent), [])
})

test('folders of a dead platform are removed, folders of a live one are not', (t) => {
  const parent = temporaryDir(t)
  const { pid } = spawnSync('true')
  const [dead, living, other] = [`molecule-agent-${pid}-abc`, `molecule-agent-${process.ppid}-abc`, 'else']
  for (const name of [dead, living, other]) mkdirSync(join(parent, name))
  const folder = createPrivateFolder(parent)
  t.after(() => folder.remove())
  folder.write('a.md', 'x')
  assert.deepEqual(
    [dead, living, other].map((name) => existsSync(join(parent, name))),
    [false, true, true],
  )
})
