import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createStarts } from './starts.ts'

const NEVER = new AbortController().signal

async function isOver(over: Promise<void>): Promise<boolean> {
  await nextTurn()
  return Promise.race([over.then(() => true), nextTurn(false)])
}

test('one that starts is waited for until it has answered or failed, and one that hangs for a while only', async () => {
  const clock = manualClock()
  const starts = createStarts(clock)
  assert.ok(await isOver(starts.over(NEVER)))
  const [well, badly] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  starts.note(well.promise)
  starts.note(badly.promise)
  const over = starts.over(NEVER)
  well.resolve()
  assert.ok(!(await isOver(over)))
  badly.reject(new Error('it died'))
  assert.ok(await isOver(over))
  starts.note(new Promise(() => undefined))
  const patient = starts.over(NEVER)
  assert.ok(!(await isOver(patient)))
  clock.advance(10_000)
  assert.ok(await isOver(patient))
})

test('whoever waits for starts goes when told to, and not behind ever new ones', async () => {
  const clock = manualClock()
  const starts = createStarts(clock)
  const stop = new AbortController()
  const hang = () => starts.note(new Promise(() => undefined))
  hang()
  const waiting = starts.over(stop.signal)
  stop.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  const over = starts.over(NEVER)
  for (let seconds = 0; seconds < 20; seconds += 5) {
    hang()
    clock.advance(5000)
    await nextTurn()
  }
  assert.ok(await isOver(over))
})
