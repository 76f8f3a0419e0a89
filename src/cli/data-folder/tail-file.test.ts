import assert from 'node:assert/strict'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { tailFile } from './tail-file.ts'

test('CL-1 logs: shows the last lines, then added lines, also after a rotation', async (t) => {
  const path = join(temporaryDir(t), 'molecule.log')
  writeFileSync(path, 'one\ntwo\nthree\nunfin')
  const stop = new AbortController()
  const lines: string[] = []
  const hold = setInterval(() => undefined, 1000)
  t.after(() => clearInterval(hold))
  const following = (async () => {
    for await (const line of tailFile(path, { count: 2, follow: true, signal: stop.signal })) lines.push(line)
  })()
  await waitUntil(() => lines.length === 2, 'the last two')
  appendFileSync(path, 'ished\n')
  await waitUntil(() => lines.length === 3, 'the whole line')
  appendFileSync(path, 'last of the old\n')
  renameSync(path, `${path}.1`)
  writeFileSync(path, 'first of the new\n')
  await waitUntil(() => lines.length === 5, 'both files')
  stop.abort()
  await following
  assert.deepEqual(lines, ['two', 'three', 'unfinished', 'last of the old', 'first of the new'])
})

test('a missing log is one sentence', async (t) => {
  const signal = new AbortController().signal
  const lines = tailFile(join(temporaryDir(t), 'none.log'), { count: 1, follow: false, signal })
  const read = async () => {
    for await (const line of lines) assert.fail(line)
  }
  await assert.rejects(read, { code: 'not_found', message: /MOLECULE_HOME/ })
})
