import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { createStallTimer } from './stall-timer.ts'
import { createTurnWaits } from './turn-waits.ts'

const SILENT_MS = 60_000

function setUp() {
  const clock = manualClock()
  const stall = createStallTimer(clock, SILENT_MS)
  const isAborted = () => stall.signal?.aborted
  return { clock, stall, isAborted }
}

test('a silence as long as the limit ends the turn with a timeout that can be retried', () => {
  const { clock, stall, isAborted } = setUp()
  clock.advance(SILENT_MS - 1)
  assert.deepEqual([isAborted(), stall.error], [false, undefined])
  clock.advance(1)
  assert.equal(isAborted(), true)
  assert.deepEqual(
    [stall.error?.code, stall.error?.message, stall.error?.retryable],
    ['timeout', 'the agent was silent for 1m0s', true],
  )
})

test('each sign of life begins the silence anew', () => {
  const { clock, stall, isAborted } = setUp()
  for (let sign = 0; sign < 3; sign++) {
    clock.advance(SILENT_MS - 1)
    stall.reset()
  }
  clock.advance(SILENT_MS - 1)
  assert.equal(isAborted(), false)
  clock.advance(1)
  assert.equal(isAborted(), true)
})

test('a paused timer waits until every pause is over, whatever the agent does meanwhile', () => {
  const { clock, stall, isAborted } = setUp()
  const [resumeFirst, resumeSecond] = [stall.pause(), stall.pause()]
  clock.advance(10 * SILENT_MS)
  resumeFirst()
  stall.reset()
  clock.advance(10 * SILENT_MS)
  assert.equal(isAborted(), false)
  resumeSecond()
  clock.advance(SILENT_MS - 1)
  assert.equal(isAborted(), false)
  clock.advance(1)
  assert.equal(isAborted(), true)
})

test('one pause stops the timer, and the silence before it is forgotten', () => {
  const { clock, stall, isAborted } = setUp()
  clock.advance(SILENT_MS - 1)
  const resume = stall.pause()
  clock.advance(SILENT_MS)
  resume()
  clock.advance(SILENT_MS - 1)
  assert.equal(isAborted(), false)
})

test('a timer that has ended aborts nothing, also after a late sign of life', () => {
  for (const late of [false, true]) {
    const { clock, stall, isAborted } = setUp()
    stall.end()
    if (late) stall.reset()
    clock.advance(10 * SILENT_MS)
    assert.deepEqual([isAborted(), stall.error], [false, undefined])
  }
})

test('a backend without a limit has no timer', () => {
  const stall = createStallTimer(manualClock(), undefined)
  stall.reset()
  stall.pause()()
  stall.end()
  assert.deepEqual([stall.signal, stall.error], [undefined, undefined])
})

test('TW-1 each wait of a turn is told to every listener, also one that comes later, and ends once', async () => {
  const { clock, stall, isAborted } = setUp()
  const waits = createTurnWaits(stall)
  const seen: string[] = []
  const listen = (name: string) =>
    waits.onWait((over) => {
      seen.push(`${name} waits`)
      over.then(() => seen.push(`${name} goes on`))
    })
  listen('first')
  waits.setWaiting(false)
  assert.deepEqual(seen, [])
  waits.setWaiting(true)
  waits.setWaiting(true)
  listen('second')
  assert.deepEqual(seen, ['first waits', 'second waits'])
  clock.advance(10 * SILENT_MS)
  assert.equal(isAborted(), false, 'the silence of a wait is no stall')
  waits.setWaiting(false)
  waits.setWaiting(false)
  await clock.settle()
  assert.deepEqual(seen.splice(0).slice(2), ['first goes on', 'second goes on'])
  waits.setWaiting(true)
  assert.deepEqual(seen, ['first waits', 'second waits'])
  waits.setWaiting(false)
  clock.advance(SILENT_MS)
  assert.equal(isAborted(), true)
})
