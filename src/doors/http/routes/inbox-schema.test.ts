import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome, Usage } from '../../../inbox/inbox.ts'
import { settleSchema, toOutcome } from './inbox-schema.ts'

type Complete<T> = { readonly [K in keyof T]-?: T[K] }

const usage: Complete<Usage> = { inputTokens: 1, outputTokens: 2, costUsd: 0.5, durationMs: 3 }
const said = { parts: [{ text: 'why' }], metadata: { a: 1 } }
const failure = {
  ...{ code: 'exit', message: 'broke', sentence: 'it broke', category: 'exit_1', id: 'err_1' },
  details: { stderr: 'x' },
}
const artifacts = [{ artifactId: 'a', name: 'n', parts: [{ text: 'made' }] }]

/** One outcome of each kind with every field: a new field of the seam does not compile until it is added here. */
const OUTCOMES: { readonly [T in Outcome['type']]: Complete<Extract<Outcome, { type: T }>> } = {
  done: {
    ...{ type: 'done', finality: 'completed', parts: [{ text: 'ok' }], metadata: { b: 2 }, session: 's' },
    ...{ artifacts, said, usage },
  },
  retry: { type: 'retry', failure, afterMs: 5000, reason: 'failure', interrupted: true, usage },
  dead: { type: 'dead', failure, artifacts, usage },
  stopped: { type: 'stopped', usage },
  released: { type: 'released', interrupted: false, parked: { afterMs: 1000, said }, usage },
}

test('CN-4 every outcome of a turn crosses the wire complete, and a field of a later version does no harm', () => {
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  for (const outcome of Object.values(OUTCOMES)) {
    const sent = JSON.parse(JSON.stringify({ key, host: 'here', outcome: { ...outcome, fromLater: true }, later: 1 }))
    assert.deepEqual(toOutcome(settleSchema.parse(sent).outcome), outcome)
  }
})

test('CN-4 a lease key with an empty id is refused', () => {
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const outcome = { type: 'stopped' }
  assert.equal(settleSchema.safeParse({ key, host: 'here', outcome }).success, true)
  for (const name of ['conversationId', 'taskId', 'messageId'])
    assert.equal(settleSchema.safeParse({ key: { ...key, [name]: '' }, host: 'here', outcome }).success, false, name)
})
