import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { linuxOnly } from '../../test/harness/live-processes.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { startTimeByPs, startTimeOf } from './identity.ts'
import { readStat } from './proc.ts'

test('the start time is read although the program name has brackets and spaces', linuxOnly, async (t) => {
  const path = join(temporaryDir(t), 'a) R 1 (b')
  copyFileSync('/bin/sleep', path)
  const { pid } = sleeper(t, path)
  const stat = await readStat(pid)
  assert.equal(stat?.group, pid)
  assert.match(stat?.startTime ?? '', /^\d+$/)
  assert.equal(await startTimeOf(pid), stat?.startTime)
})

const psOnly = { skip: !existsSync('/bin/ps') && !existsSync('/usr/bin/ps') && 'needs ps' }

test('without /proc, ps gives the start time, the same each time', psOnly, async (t) => {
  const { pid, end } = sleeper(t, '/bin/sleep')
  const startTime = await startTimeByPs(pid)
  assert.match(startTime ?? '', /\d\d:\d\d:\d\d \d{4}$/)
  assert.equal(await startTimeByPs(pid), startTime)
  await end()
  assert.equal(await startTimeByPs(pid), undefined)
  assert.equal(await startTimeOf(pid), undefined)
})

function sleeper(t: TestContext, path: string) {
  const child = spawn(path, ['300'], { detached: true, stdio: 'ignore' })
  const exited = once(child, 'exit')
  const end = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.after(end)
  return { pid: child.pid ?? 0, end }
}
