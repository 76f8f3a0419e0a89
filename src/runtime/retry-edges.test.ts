import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo, SENDER } from '../../test/fakes/letters.ts'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Lease } from '../inbox/inbox.ts'
import { exhaustedOutcome, type FailedTurn, outcomeOfFailure } from './retry-policy.ts'

const HOUR_MS = 3600_000

const lease = (more: Partial<Lease> = {}): Lease => ({
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
  failures: 0,
  losses: 0,
  interrupted: false,
  sessionRetried: false,
  ...more,
})
const retryable = (code: ErrorCode, details = {}) => new MoleculeError(code, 'why', { retryable: true, details })
const outcomeOf = (error: MoleculeError, more: Partial<FailedTurn> = {}) =>
  outcomeOfFailure({ lease: lease(), error, maxAttempts: 4, usedTool: false, ...more })

test('a lost session comes again at once; its failure is the plain sentence, and nothing was interrupted', () => {
  assert.deepEqual(outcomeOf(new MoleculeError('session_lost', 'no such session')), {
    type: 'retry',
    afterMs: 0,
    reason: 'session_lost',
    interrupted: false,
    failure: {
      code: 'session_lost',
      message: 'no such session',
      details: {},
      category: 'session_error',
      sentence: 'the agent no longer knows this conversation',
    },
  })
})

test('a dead letter has the plain sentence, and a retry the number of its attempt', () => {
  const spoken = { category: 'exit_3', sentence: "the agent's program ended with exit code 3" }
  const exit = retryable('exit', { exitCode: 3 })
  const plain = { code: 'exit', message: 'why', details: { exitCode: 3 } }
  assert.deepEqual(outcomeOf(exit, { maxAttempts: 1 }), { type: 'dead', failure: { ...plain, ...spoken } })
  assert.deepEqual(outcomeOf(exit), {
    type: 'retry',
    afterMs: 5000,
    reason: 'failure',
    interrupted: true,
    failure: {
      ...plain,
      ...spoken,
      sentence: `attempt 2 of 4 in 5 s: ${spoken.sentence}`,
    },
  })
})

test('RT-11 the next attempt hears of an interruption after an exit, a timeout, a missing end, and a tool', () => {
  const interrupted = (code: ErrorCode, usedTool: boolean) => {
    const outcome = outcomeOf(retryable(code), { usedTool })
    return outcome.type === 'retry' ? outcome.interrupted : outcome.type
  }
  const codes = ['exit', 'timeout', 'no_end', 'rate_limited', 'empty_response'] as const
  assert.deepEqual(
    codes.map((code) => interrupted(code, false)),
    [true, true, true, false, false],
  )
  assert.deepEqual(
    codes.map((code) => interrupted(code, true)),
    [true, 'dead', true, true, false],
  )
  const quota = new MoleculeError('quota_exhausted', 'no credit', { details: { resetAfterMs: HOUR_MS } })
  const parked = outcomeOf(quota, { usedTool: true, rateLimitPatienceMs: 0 })
  assert.deepEqual(parked.type === 'retry' && [parked.interrupted, parked.parked, parked.reason], [
    true,
    true,
    'failure',
  ])
})

test('RE-3 only a turn that a shutdown stopped is released: by its exit, its end or its start, if it is retryable', () => {
  const typeOf = (code: ErrorCode, shuttingDown: boolean) => outcomeOf(retryable(code), { shuttingDown }).type
  for (const code of ['exit', 'no_end', 'spawn_failed'] as const) {
    assert.equal(typeOf(code, true), 'released', code)
    assert.equal(typeOf(code, false), 'retry', code)
  }
  assert.equal(typeOf('timeout', true), 'retry')
})

test('RT-14 only a rate limit waits for its patience: other errors, and limits without a retry, do not', () => {
  const last = { lease: lease({ failures: 3 }), rateLimitPatienceMs: HOUR_MS }
  assert.equal(outcomeOf(retryable('exit'), last).type, 'dead')
  assert.equal(outcomeOf(new MoleculeError('rate_limited', 'no'), last).type, 'dead')
  for (const code of ['rate_limited', 'overloaded'] as const) {
    const outcome = outcomeOf(retryable(code), last)
    assert.deepEqual(outcome.type === 'retry' && [outcome.parked, outcome.afterMs], [true, 60_000], code)
  }
})

test('RT-14 the last millisecond of the patience is still a wait; a message that never waited does not say so', () => {
  const limited = retryable('rate_limited')
  const tried = (sinceMs: number, rateLimitPatienceMs: number) => {
    const parked = sinceMs === 0 ? {} : { parked: { times: 1, sinceMs } }
    return outcomeOf(limited, { lease: lease({ failures: 3, ...parked }), rateLimitPatienceMs })
  }
  const last = tried(HOUR_MS - 1, HOUR_MS)
  assert.deepEqual(last.type === 'retry' && last.afterMs, 1)
  const sentenceOf = (outcome: ReturnType<typeof tried>) => outcome.type === 'dead' && outcome.failure.sentence
  assert.equal(sentenceOf(tried(0, 0)), "the model provider's rate limit is reached")
  assert.match(String(sentenceOf(tried(1, 1))), /^given up after 1 s \(rate_limit_patience\): the model/)
})

test('a time that the provider names: zero is at once, a part of a millisecond is one, a negative one is none', () => {
  const afterMs = (resetAfterMs: unknown) => {
    const outcome = outcomeOf(retryable('overloaded', { resetAfterMs }))
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  }
  assert.deepEqual([0, 0.5, 1500.2, -1, '7'].map(afterMs), [0, 1, 1501, 5000, 5000])
})

test('RT-14 a used-up quota on a platform that cannot park is a plain retry at the named time', () => {
  const quota = retryable('quota_exhausted', { resetAfterMs: 90_000 })
  const outcome = outcomeOf(quota)
  assert.deepEqual(outcome.type === 'retry' && [outcome.afterMs, outcome.parked], [90_000, undefined])
  const days = outcomeOf(retryable('quota_exhausted', { resetAfterMs: 25 * HOUR_MS }))
  assert.equal(
    days.type === 'dead' && days.failure.sentence,
    'the quota or credit at the model provider is used up, for another 25 h: add credit, change the plan or wait for the quota to return, then replay this message',
  )
  assert.equal(days.type === 'dead' && days.failure.message, 'why')
})

test('RE-3 the cause of a failure is looked for ten errors deep, so that a circle of causes ends', () => {
  const nested = (depth: number) => {
    let cause: Error = Object.assign(new Error('open'), { code: 'EMFILE' })
    for (let level = 2; level < depth; level++) cause = new Error('while working', { cause })
    return new MoleculeError('internal', 'broken', { cause })
  }
  const text = 'waiting: the machine has no free file handles or processes (EMFILE)'
  const parked = { afterMs: 10_000, said: { parts: [{ text }] } }
  assert.deepEqual(exhaustedOutcome(nested(10)), { type: 'released', interrupted: false, parked })
  assert.deepEqual(exhaustedOutcome(nested(3), true), { type: 'released', interrupted: true, parked })
  assert.equal(exhaustedOutcome(nested(11)), undefined)
})
