import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFloodLimit, PLACE_MESSAGES_MAX } from './flood-limit.ts'

test('GW-10 a flood of one place is limited and said once; other places, and the next minute, are not', () => {
  const flood = createFloodLimit()
  const results = Array.from({ length: PLACE_MESSAGES_MAX + 3 }, () => flood.take('a', 1000))
  assert.deepEqual(results.slice(0, PLACE_MESSAGES_MAX), Array(PLACE_MESSAGES_MAX).fill('ok'))
  assert.deepEqual(results.slice(PLACE_MESSAGES_MAX), ['first', 'more', 'more'])
  assert.equal(flood.take('b', 1000), 'ok')
  assert.equal(flood.take('a', 61_000), 'ok')
})

test('GW-10 a long flood gets the limit of each minute in which it was written, and one sentence for each', () => {
  const flood = createFloodLimit()
  const results = Array.from({ length: 500 }, (_, n) => flood.take('a', n * 500))
  const taken = results.filter((result) => result === 'ok').length
  assert.ok(taken > 4 * PLACE_MESSAGES_MAX && taken <= 5 * PLACE_MESSAGES_MAX, `${taken} are taken`)
  assert.ok(results.filter((result) => result === 'first').length <= 5)
})
