/** When a failed push is tried again, and when the platform gives up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isGivenUp, retryDelayMs } from './retry-schedule.ts'

test('the wait before a new try doubles from two seconds to an hour', () => {
  assert.deepEqual([1, 2, 3, 11, 12, 30].map(retryDelayMs), [2000, 4000, 8000, 2_048_000, 3_600_000, 3_600_000])
})

test('a push is given up after ten tries, or after a day', () => {
  const dayMs = 86_400_000
  assert.deepEqual([isGivenUp(9, 0), isGivenUp(10, 0), isGivenUp(11, dayMs)], [false, true, true])
  assert.deepEqual([isGivenUp(1, dayMs - 1), isGivenUp(1, dayMs)], [false, true])
})
