import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createStartGate } from './start-gate.ts'

const NEVER = new AbortController().signal

async function isOver(over: Promise<void>): Promise<boolean> {
  await nextTurn()
  return Promise.race([over.then(() => true), nextTurn(false)])
}

test('the wait for a starting process ends when it has answered or failed, or after a while if it hangs', async () => {
  const clock = manualClock()
  const starts = createStartGate(clock)
  assert.ok(await isOver(starts.waitUntilIdle(NEVER)))
  const [well, badly] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  starts.track(well.promise)
  starts.track(badly.promise)
  const over = starts.waitUntilIdle(NEVER)
  well.resolve()
  assert.ok(!(await isOver(over)))
  badly.reject(new Error('it died'))
  assert.ok(await isOver(over))
  starts.track(new Promise(() => undefined))
  const patient = starts.waitUntilIdle(NEVER)
  assert.ok(!(await isOver(patient)))
  clock.advance(10_000)
  assert.ok(await isOver(patient))
})

test('the wait for starts ends on abort, and also behind a series of new starts', async () => {
  const clock = manualClock()
  const starts = createStartGate(clock)
  const stop = new AbortController()
  const hang = () => starts.track(new Promise(() => undefined))
  hang()
  const waiting = starts.waitUntilIdle(stop.signal)
  stop.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  const over = starts.waitUntilIdle(NEVER)
  for (let seconds = 0; seconds < 20; seconds += 5) {
    hang()
    clock.advance(5000)
    await nextTurn()
  }
  assert.ok(await isOver(over))
})
