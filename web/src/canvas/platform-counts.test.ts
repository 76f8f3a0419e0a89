import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { platformCounts } from './platform-counts.ts'

test('RT-13 the bar sums what runs, waits and costs; a cost that no turn reported stays unknown', () => {
  const idle = fakeWorkspace('a', { status: 'paused', today: { turns: 1, unknown_turns: 1, cost_usd: null } })
  const unknown = platformCounts([idle])
  assert.deepEqual([unknown.costUsd, unknown.hasUnknownCost, unknown.active], [null, true, 0])
  const busy = fakeWorkspace('b', {
    running: 2,
    queue_depth: 3,
    today: { turns: 2, unknown_turns: 0, cost_usd: 0.4 },
  })
  const asking = fakeWorkspace('c', { status: 'paused', current_task: 'asks for a permission' })
  assert.deepEqual(platformCounts([idle, busy, busy, asking]), {
    working: 4,
    waiting: 1,
    queued: 6,
    active: 2,
    paused: 2,
    costUsd: 0.8,
    hasUnknownCost: true,
  })
})
