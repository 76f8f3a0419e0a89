import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costText, countText, relativeTime, runningTime, tookTime } from './times.ts'

test('a time is relative under an hour, then a clock time, then a day', () => {
  const now = new Date(2026, 10, 16, 15, 30).getTime()
  assert.equal(relativeTime(now - 20_000, now), 'just now')
  assert.equal(relativeTime(now - 2 * 60_000, now), '2 min ago')
  assert.equal(relativeTime(now - 92 * 60_000, now), '13:58')
  assert.equal(relativeTime(new Date(2026, 10, 12, 9).getTime(), now), '12 Nov')
  assert.equal(relativeTime(new Date(2025, 10, 12, 9).getTime(), now), '12 Nov 2025')
})

test('durations grow from milliseconds to hours', () => {
  assert.deepEqual([820, 6200, 38_000, 120_000, 11_100_000].map(tookTime), [
    '820 ms',
    '6.2 s',
    '38 s',
    '2 min',
    '3 h 5 min',
  ])
  assert.deepEqual([38_000, 728_000, 3_723_000, -5].map(runningTime), ['0:38', '12:08', '1:02:03', '0:00'])
})

test('RT-13 an unknown cost is unknown and never 0', () => {
  assert.equal(costText(null), 'unknown')
  assert.equal(costText(0.414), '$0.41')
  assert.equal(costText(0.004), '$0.004')
  assert.equal(costText(11.42, true), '≥ $11.42')
  assert.equal(countText(1904), '1,904')
})
