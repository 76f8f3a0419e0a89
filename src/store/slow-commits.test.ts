import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { silentLog } from '../log.ts'
import { createMetrics } from '../metrics.ts'
import { watchSlowCommits } from './slow-commits.ts'

test('RE-7 every slow commit is counted, and the log has one line a minute that says how many', () => {
  const clock = manualClock()
  const metrics = createMetrics()
  const logged: object[] = []
  const onCommit = watchSlowCommits({
    clock,
    metrics,
    log: { ...silentLog, warn: (fields) => void logged.push(fields) },
  })
  for (const tookMs of [1, 99, 100, 250, 300]) onCommit(tookMs)
  clock.advance(60_000)
  onCommit(400)
  assert.deepEqual(logged, [
    { tookMs: 100, slowCommits: 1 },
    { tookMs: 400, slowCommits: 3 },
  ])
  assert.deepEqual(metrics.read().get('molecule_store_slow_commits_total'), [{ labels: {}, value: 4 }])
})
