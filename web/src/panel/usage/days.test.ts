import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisOf, daysOf, shortCount, tokensText } from './days.ts'

const sum = (more: object = {}) => ({
  turns: 1,
  unknown_turns: 0,
  unknown_cost_turns: 0,
  input_tokens: 10,
  output_tokens: 2,
  cost_usd: 0.5,
  duration_ms: 5,
  ...more,
})

test('RT-13 the chart has every day of the range in UTC, the oldest first, also days without turns', () => {
  const days = daysOf([{ day: '2026-11-15', ...sum() }], 3, Date.UTC(2026, 10, 16, 23, 59))
  assert.deepEqual(
    days.map(({ title, isToday, sum: used }) => [title, isToday, used?.cost_usd]),
    [
      ['14 Nov', false, undefined],
      ['15 Nov', false, 0.5],
      ['16 Nov', true, undefined],
    ],
  )
})

test('RT-13 the axis ends at a round amount that no bar exceeds', () => {
  assert.deepEqual(axisOf(1.84).steps, [0, 1, 2])
  assert.equal(axisOf(0.031).end, 0.04)
  assert.equal(axisOf(9.5).end, 10)
  assert.deepEqual(axisOf(0).steps, [0, 1])
})

test('RT-13 unknown tokens are unknown, and a sum with unknown parts says so', () => {
  assert.equal(tokensText(sum()), '12')
  assert.equal(tokensText(sum({ unknown_turns: 1 })), '≥ 12')
  assert.equal(tokensText(sum({ input_tokens: null, output_tokens: null, unknown_turns: 1 })), 'unknown')
  assert.deepEqual([shortCount(930), shortCount(41_208), shortCount(6_100_000)], ['930', '41.2 k', '6.1 M'])
})
