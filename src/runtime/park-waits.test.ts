import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo, SENDER } from '../../test/fakes/letters.ts'
import { MoleculeError } from '../errors.ts'
import type { Lease } from '../inbox/worker.ts'
import { outcomeOfFailure } from './retry-policy.ts'

const LEASE: Lease = {
  workspaceId: 'ws_1',
  conversationId: 'c',
  taskId: 't',
  messageId: 'm',
  epoch: 1,
  contextId: 'x',
  principal: 'people',
  sender: SENDER,
  envelope: letterTo('ws_1').envelope,
  idempotencyKey: 'k',
  failures: 3,
  losses: 0,
  interrupted: false,
  sessionRetried: false,
}

test('RT-14 the waits for a rate limit grow to ten minutes and stay there', () => {
  const error = new MoleculeError('rate_limited', 'slow down', { retryable: true })
  const waitMs = (times: number) => {
    const lease = { ...LEASE, parked: { times, sinceMs: 1 } }
    const patience = { maxAttempts: 4, rateLimitPatienceMs: 24 * 3600_000 }
    const outcome = outcomeOfFailure({ lease, error, usedTool: false, ...patience })
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  }
  assert.deepEqual([1, 2, 3, 4, 5, 100].map(waitMs), [120_000, 300_000, 600_000, 600_000, 600_000, 600_000])
})
