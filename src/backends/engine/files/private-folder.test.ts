import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
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

test('RE-9 folders of a dead platform are removed, and no folder that only has such a name', (t) => {
  const parent = temporaryDir(t)
  const first = createPrivateFolder(parent)
  t.after(() => first.remove())
  const mark = join(dirname(first.write('a.md', 'x')), '.made-by')
  const { pid } = spawnSync('true')
  const make = (name: string, { mode = 0o700, marked = true } = {}) => {
    const path = join(parent, name)
    mkdirSync(path)
    if (marked) copyFileSync(mark, join(path, '.made-by'))
    chmodSync(path, mode)
    return path
  }
  const dead = make(`molecule-agent-${pid}-dead`)
  const elsewhere = make(`molecule-agent-${pid}-elsewhere`)
  writeFileSync(join(elsewhere, '.made-by'), 'another container')
  const link = join(parent, `molecule-agent-${pid}-link`)
  symlinkSync(make('else'), link)
  const foreign = make(`molecule-agent-${pid}-foreign`)
  // Only root can give a folder away.
  if (process.getuid?.() === 0) chownSync(foreign, 12_345, 12_345)
  else chmodSync(foreign, 0o777)
  const kept = [
    ...[elsewhere, link, foreign, join(parent, 'else')],
    make(`molecule-agent-${process.ppid}-living`),
    make(`molecule-agent-${pid}-unmarked`, { marked: false }),
    make(`molecule-agent-${pid}-open`, { mode: 0o777 }),
  ]
  const second = createPrivateFolder(parent)
  t.after(() => second.remove())
  second.write('a.md', 'x')
  assert.ok(!existsSync(dead))
  for (const path of kept) assert.ok(existsSync(path), path)
})
