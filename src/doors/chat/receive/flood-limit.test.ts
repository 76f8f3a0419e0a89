import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFloodLimit, PLACE_MESSAGES_MAX } from './flood-limit.ts'

test('GW-10 a flood of one place is limited and said once; other places, and the next minute, are not', () => {
  let nowMs = 0
  const flood = createFloodLimit({ monotonicMs: () => nowMs })
  const results = Array.from({ length: PLACE_MESSAGES_MAX + 3 }, () => flood.take('a'))
  assert.deepEqual(results.slice(0, PLACE_MESSAGES_MAX), Array(PLACE_MESSAGES_MAX).fill('ok'))
  assert.deepEqual(results.slice(PLACE_MESSAGES_MAX), ['first', 'more', 'more'])
  assert.equal(flood.take('b'), 'ok')
  nowMs += 60_000
  assert.equal(flood.take('a'), 'ok')
})
