import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

test('PL-10 counters add up by their labels', () => {
  const metrics = createMetrics()
  metrics.count('molecule_turns_total', { outcome: 'done' })
  metrics.count('molecule_turns_total', { outcome: 'done' }, 2)
  metrics.count('molecule_turns_total', { outcome: 'dead' })
  assert.deepEqual(metrics.read().get('molecule_turns_total'), [
    { labels: { outcome: 'done' }, value: 3 },
    { labels: { outcome: 'dead' }, value: 1 },
  ])
})

test('PL-10 label values beyond the limit are counted together as other', () => {
  const metrics = createMetrics()
  for (let code = 0; code < 1000; code++) metrics.count('molecule_turn_failures_total', { code: `code-${code}` })
  const series = metrics.read().get('molecule_turn_failures_total') ?? []
  assert.equal(series.length, 201)
  assert.deepEqual(series.at(-1), { labels: { code: 'other' }, value: 800 })
})
