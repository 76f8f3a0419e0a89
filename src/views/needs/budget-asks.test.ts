import assert from 'node:assert/strict'
import test from 'node:test'
import { usdText } from '../../usd.ts'
import { raiseSuggestion } from './budget-asks.ts'

test('TW-10 the suggested budget is the next of 1, 2 and 5 in the range of what is spent', () => {
  const suggested = [
    ...[0, 0.01, 0.4, 0.5, 0.99].map((cost_usd) => raiseSuggestion({ max_cost_usd: 0, cost_usd })),
    ...[1, 2, 3.02, 5, 9.5, 10, 20, 60].map((max_cost_usd) => raiseSuggestion({ max_cost_usd, cost_usd: 0.5 })),
  ]
  assert.deepEqual(suggested, [0.01, 0.02, 0.5, 1, 1, 2, 5, 5, 10, 10, 20, 50, 100])
  assert.deepEqual([usdText(5), usdText(0.4), usdText(0.0031)], ['$5.00', '$0.40', '$0.0031'])
})
