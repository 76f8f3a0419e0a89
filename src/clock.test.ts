import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../test/fakes/manual-clock.ts'
import { awakeClock, type Clock } from './clock.ts'

/** A clock of a machine that sleeps: a timer that is due during the sleep fires when the machine wakes. */
function sleepyClock() {
  const clock = manualClock()
  let asleep: (() => void)[] | undefined
  const machine: Clock = {
    ...clock,
    after: (delayMs, callback) =>
      clock.after(delayMs, () => (asleep === undefined ? callback() : asleep.push(callback))),
  }
  return {
    machine,
    advance: clock.advance,
    sleep(ms: number) {
      asleep = []
      clock.advance(ms)
      const missed = asleep
      asleep = undefined
      for (const callback of missed) callback()
    },
  }
}

test('CN-9 a wait counts a sleep of the machine as one step at most', () => {
  const { machine, advance, sleep } = sleepyClock()
  let over = false
  awakeClock(machine).after(60_000, () => {
    over = true
  })
  advance(15_000)
  sleep(8 * 3600_000)
  advance(35_000)
  assert.equal(over, false)
  advance(10_000)
  assert.equal(over, true)
})

test('without a sleep of the machine, a wait is exact and can be cancelled in any step', () => {
  const { machine, advance } = sleepyClock()
  const clock = awakeClock(machine)
  const fired: number[] = []
  const startMs = machine.monotonicMs()
  for (const delayMs of [0, 1, 9_999, 10_000, 10_001, 60_000, 123_456]) {
    clock.after(delayMs, () => fired.push(machine.monotonicMs() - startMs))
  }
  const cancel = clock.after(50_000, () => assert.fail('it was cancelled'))
  for (let ms = 0; ms < 200_000; ms++) {
    advance(1)
    if (ms === 35_000) cancel()
  }
  assert.deepEqual(fired, [0, 1, 9_999, 10_000, 10_001, 60_000, 123_456])
})
