import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { linuxOnly } from '../../test/harness/live-processes.ts'
import { groupAlive, killGroup, stopGroup } from './group.ts'

test('a group whose id now belongs to another process is not signalled', linuxOnly, async (t) => {
  const stranger = spawn('/bin/sleep', ['300'], { detached: true, stdio: 'ignore' })
  const exited = once(stranger, 'exit')
  t.after(async () => {
    stranger.kill('SIGKILL')
    await exited
  })
  const pid = stranger.pid ?? 0
  const reused = { pid, leaderReaped: () => true }
  assert.equal(groupAlive(reused), false)
  assert.equal(await stopGroup(reused, 50), true)
  assert.equal(await killGroup(reused), true)
  assert.equal(groupAlive({ pid, leaderReaped: () => false }), true)
})
