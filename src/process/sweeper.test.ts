import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { isAlive, linuxOnly } from '../../test/harness/live-processes.ts'
import { systemClock } from '../clock.ts'
import { silentLog } from '../log.ts'
import { createSweeper, type SweeperOptions } from './sweeper.ts'

/** Unique, so that two runs of these tests at once do not sweep each other's processes. */
const owner = `sweep-test-${process.pid}`

test('RE-5 a sweep kills the processes with exactly this mark', linuxOnly, async (t) => {
  const sweeper = createSweeper(options())
  const marked = await sleeper(t, { MOLECULE_TURN: `${owner}:t1` })
  const others = await Promise.all([
    sleeper(t, { MOLECULE_TURN: `${owner}:t10` }),
    sleeper(t, { MOLECULE_TURN: `another-${owner}:t1` }),
    sleeper(t, { NOT_MOLECULE_TURN: `${owner}:t1` }),
    sleeper(t, { NOTE: `MOLECULE_TURN=${owner}:t1` }),
  ])
  await sweeper.now('t1')
  assert.ok(!isAlive(marked))
  assert.deepEqual(others.map(isAlive), [true, true, true, true])
})

test('RE-5 a mark is found in an environment of any size', linuxOnly, async (t) => {
  const sweeper = createSweeper(options())
  const padding = Object.fromEntries(Array.from({ length: 4 }, (_, n) => [`A_${n}`, 'x'.repeat(60_000)]))
  const pid = await sleeper(t, { ...padding, MOLECULE_TURN: `${owner}:large` })
  await sweeper.now('large')
  assert.ok(!isAlive(pid))
})

test('a mark of a live run is not swept until that run ends', linuxOnly, async (t) => {
  let live = true
  const sweeper = createSweeper({ ...options(), isLive: () => live })
  const pid = await sleeper(t, { MOLECULE_TURN: `${owner}:shared` })
  await sweeper.now('shared')
  assert.ok(isAlive(pid))
  live = false
  await sweeper.now('shared')
  assert.ok(!isAlive(pid))
})

test('marks that end together are swept together, and close does not wait for the delay', linuxOnly, async (t) => {
  let timers = 0
  const after = () => {
    timers += 1
    return () => undefined
  }
  const clock = { ...systemClock, after }
  const sweeper = createSweeper({ ...options(), clock })
  const pids = await Promise.all(['a', 'b', 'c'].map((mark) => sleeper(t, { MOLECULE_TURN: `${owner}:${mark}` })))
  for (const mark of ['a', 'b', 'c']) sweeper.later(mark)
  assert.equal(timers, 1)
  await sweeper.close()
  assert.deepEqual(pids.map(isAlive), [false, false, false])
})

function options(): SweeperOptions {
  return { owner, clock: systemClock, log: silentLog, isLive: () => false }
}

/** A process in its own session; the test ends it if it is still alive. */
async function sleeper(t: TestContext, env: Record<string, string>): Promise<number> {
  const child = spawn('/bin/sleep', ['300'], { env, detached: true, stdio: 'ignore' })
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await once(child, 'spawn')
  return child.pid ?? 0
}
