import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

test('PL-10 counters add up by their labels', () => {
  const metrics = createMetrics()
  metrics.count('turns', { outcome: 'done' })
  metrics.count('turns', { outcome: 'done' }, 2)
  metrics.count('turns', { outcome: 'dead' })
  assert.deepEqual(metrics.read().get('turns'), [
    { labels: { outcome: 'done' }, value: 3 },
    { labels: { outcome: 'dead' }, value: 1 },
  ])
})

test('PL-10 label values beyond the limit are counted together as other', () => {
  const metrics = createMetrics()
  for (let code = 0; code < 1000; code++) metrics.count('failures', { code: `code-${code}` })
  const series = metrics.read().get('failures') ?? []
  assert.equal(series.length, 201)
  assert.deepEqual(series.at(-1), { labels: { code: 'other' }, value: 800 })
})
