import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseOf } from '../../test/fakes/letters.ts'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Lease, Outcome } from '../inbox/worker.ts'
import { exhaustedOutcome, type FailedTurn, outcomeOfFailure } from './retry-policy.ts'

const passing = (details = {}) => new MoleculeError('exit', 'exit 3', { retryable: true, details })
const outcomeOf = (error: MoleculeError, more: Partial<Lease> = {}, usedTool = false): Outcome =>
  outcomeOfFailure({ lease: leaseOf(more), error, maxAttempts: 4, usedTool })

test('a retryable error is retried after 5, 10 and 20 s and then becomes a dead letter', () => {
  const waits = [0, 1, 2, 3].map((failures) => {
    const outcome = outcomeOf(passing(), { failures })
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  })
  assert.deepEqual(waits, [5000, 10_000, 20_000, 'dead'])
})

test('the failure of a retry says which attempt, of how many, when and why, and the owner reads it once', () => {
  const { failure } = outcomeOf(passing(), { failures: 1 }) as Outcome & { type: 'retry' }
  assert.match(failure.sentence ?? '', /^attempt 3 of 4 in 10 s: the agent's program/)
  assert.equal(failure.message, 'exit 3')
  const forCaller = new MoleculeError('agent_failed', 'no ink', { retryable: true, details: { forCaller: true } })
  const spoken = outcomeOf(forCaller) as Outcome & { type: 'retry' }
  assert.deepEqual([spoken.failure.message, spoken.failure.sentence], ['attempt 2 of 4 in 5 s: no ink', undefined])
})

test('RT-6 a retry waits as long as the provider asks, up to a day', () => {
  const after = (resetAfterMs: number) => outcomeOf(limited({ resetAfterMs }))
  const soon = after(90_000)
  assert.deepEqual(soon.type === 'retry' && [soon.afterMs, soon.parked], [90_000, undefined])
  assert.match(soon.type === 'retry' ? (soon.failure.sentence ?? '') : '', /^attempt 2 of 4 in 2 min: /)
  assert.equal(after(24 * HOUR_MS).type, 'retry')
  assert.equal(after(25 * HOUR_MS).type, 'dead')
})

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const limited = (details = {}) => new MoleculeError('rate_limited', 'slow down', { retryable: true, details })
const quota = (details = {}) => new MoleculeError('quota_exhausted', 'no credit', { details })

/** The outcome of each attempt at a message whose turns take no time, until it is a dead letter; waits in seconds. */
function waitsOf(error: MoleculeError, { maxAttempts = 4, patienceMs = HOUR_MS } = {}): string[] {
  const waits: string[] = []
  let [failures, times, sinceMs] = [0, 0, 0]
  for (;;) {
    const parked = times === 0 ? {} : { parked: { times, sinceMs } }
    const given = { error, maxAttempts, usedTool: false, rateLimitPatienceMs: patienceMs }
    const outcome = outcomeOfFailure({ lease: leaseOf({ failures, ...parked }), ...given })
    if (outcome.type !== 'retry') return [...waits, outcome.type]
    waits.push(`${outcome.parked === true ? 'parked ' : ''}${outcome.afterMs / 1000}`)
    if (outcome.parked !== true) failures += 1
    // The time begins with the first park.
    else [times, sinceMs] = [times + 1, sinceMs + outcome.afterMs]
  }
}
const parked = (...seconds: readonly number[]) => seconds.map((each) => `parked ${each}`)

test('RT-14 a rate limit without a time: 5, 10, 20 s, then parked for 1, 2, 5, 10 ... min, an hour in all', () => {
  const parks = parked(60, 120, 300, 600, 600, 600, 600, 600, 120)
  assert.deepEqual(waitsOf(limited()), ['5', '10', '20', ...parks, 'dead'])
})

test('RT-14 the patience ends with one last try; none means that no message is parked', () => {
  assert.deepEqual(waitsOf(limited(), { patienceMs: 4 * MINUTE_MS }).slice(3), [...parked(60, 120, 60), 'dead'])
  assert.deepEqual(waitsOf(limited(), { patienceMs: 0 }), ['5', '10', '20', 'dead'])
  assert.deepEqual(waitsOf(limited(), { maxAttempts: 1, patienceMs: 90_000 }), [...parked(60, 30), 'dead'])
  assert.deepEqual(waitsOf(limited(), { maxAttempts: 9, patienceMs: 60_000 }), ['5', '10', '20', 'parked 60', 'dead'])
})

test('RT-14 in the parked phase a named time only makes the wait longer, and a day is the limit', () => {
  const named = (resetAfterMs: number, patienceMs = 3 * MINUTE_MS) =>
    waitsOf(limited({ resetAfterMs }), { maxAttempts: 1, patienceMs })
  assert.deepEqual(named(0), [...parked(60, 120), 'dead'])
  assert.deepEqual(named(90_000), [...parked(90, 90), 'dead'])
  assert.deepEqual(named(3 * HOUR_MS), [...parked(3 * 3600), 'dead'])
  assert.deepEqual(named(24 * HOUR_MS), [...parked(24 * 3600), 'dead'])
  assert.deepEqual(named(25 * HOUR_MS), ['dead'])
})

test('RT-14 a message that waited in vain says how long; each park keeps the reason alone', () => {
  const given = { error: limited(), maxAttempts: 4, usedTool: true, rateLimitPatienceMs: HOUR_MS }
  const last = outcomeOfFailure({ ...given, lease: leaseOf({ failures: 3, parked: { times: 9, sinceMs: HOUR_MS } }) })
  assert.match(
    last.type === 'dead' ? (last.failure.sentence ?? '') : '',
    /^given up after 1 h \(rate_limit_patience\): the model provider's rate limit is reached$/,
  )
  const first = outcomeOfFailure({ ...given, lease: leaseOf({ failures: 3 }) })
  assert.ok(first.type === 'retry')
  assert.equal(first.failure.sentence, "the model provider's rate limit is reached")
  assert.deepEqual([first.interrupted, first.reason], [true, 'failure'])
})

test('RT-14 a used-up quota is parked until the named time, at most a day; without a time it says what to do', () => {
  const hours = (count: number) => waitsOf(quota({ resetAfterMs: count * HOUR_MS }), { patienceMs: 0 })
  assert.deepEqual(hours(5), [...parked(...Array(4).fill(5 * 3600)), 'dead'])
  assert.deepEqual(hours(24), [...parked(24 * 3600), 'dead'])
  assert.deepEqual(hours(25), ['dead'])
  assert.equal(waitsOf(quota({ resetAfterMs: 0 }))[0], 'parked 60')
  const sentence = (error: MoleculeError) => {
    const outcome = outcomeOf(error)
    return outcome.type === 'dead' ? outcome.failure.sentence : ''
  }
  assert.match(sentence(quota()) ?? '', /^the quota or credit .* is used up: add credit, .* replay this message$/)
  assert.match(sentence(quota({ resetAfterMs: 70 * HOUR_MS })) ?? '', /is used up, for another 70 h: add credit/)
})

test('RT-14 a bridge of a platform that cannot park retries as before', () => {
  const waits = [0, 1, 2, 3].map((failures) => {
    const outcome = outcomeOf(limited(), { failures })
    return outcome.type === 'retry' ? [outcome.afterMs, outcome.parked] : outcome.type
  })
  assert.deepEqual(waits, [[5000, undefined], [10_000, undefined], [20_000, undefined], 'dead'])
})

test('an error that is not retryable is final at once', () => {
  assert.equal(outcomeOf(new MoleculeError('bad_config', 'no such thing')).type, 'dead')
})

test('a timeout is retried only if no tool was used', () => {
  const timeout = new MoleculeError('timeout', 'too slow', { retryable: true })
  assert.equal(outcomeOf(timeout, {}, false).type, 'retry')
  assert.equal(outcomeOf(timeout, {}, true).type, 'dead')
})

test('a lost session is retried at once without a session, uncounted, and only once', () => {
  const lost = new MoleculeError('session_lost', 'no such session')
  const first = outcomeOf(lost, { failures: 3 })
  assert.deepEqual(first.type === 'retry' && [first.reason, first.afterMs], ['session_lost', 0])
  assert.equal(outcomeOf(lost, { sessionRetried: true }).type, 'dead')
})

test('RE-3 an error of a machine without file handles parks the message and counts no attempt', () => {
  const system = (code: string) => Object.assign(new Error(`spawn sh ${code}`), { code })
  const spawn = (code: string) => new MoleculeError('spawn_failed', 'no', { retryable: true, cause: system(code) })
  for (const code of ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']) {
    const outcome = outcomeOf(spawn(code), { failures: 3 })
    assert.equal(outcome.type === 'released' && outcome.parked?.afterMs, 10_000, code)
  }
  assert.equal(outcomeOf(spawn('EACCES')).type, 'retry')
  const file = new MoleculeError('internal', 'open failed', {
    cause: new Error('while reading', { cause: system('EMFILE') }),
  })
  const interrupted = outcomeOf(file, {}, true)
  assert.equal(interrupted.type === 'released' && interrupted.interrupted, true)
  assert.equal(outcomeOf(new MoleculeError('internal', 'busy', { cause: system('EAGAIN') })).type, 'dead')
  const own: Error = new Error('caused by itself')
  own.cause = own
  assert.equal(outcomeOf(new MoleculeError('internal', 'x', { cause: own })).type, 'dead')
})

test('RE-3 an agent that ends during a shutdown costs no attempt, even the last one', () => {
  const stopped = (error: MoleculeError) =>
    outcomeOfFailure({ lease: leaseOf({ failures: 3 }), error, maxAttempts: 4, usedTool: true, shuttingDown: true })
  assert.deepEqual(stopped(passing({ signal: 'SIGTERM' })), { type: 'released', interrupted: true })
  assert.equal(stopped(new MoleculeError('rate_limited', 'slow down', { retryable: true })).type, 'dead')
  assert.equal(stopped(new MoleculeError('exit', 'bad usage')).type, 'dead')
})

test('RT-6 a turn that used a tool before its provider failed may be half done, and its next attempt says so', () => {
  for (const code of ['provider_failed', 'provider_unreachable', 'overloaded'] as const) {
    const error = new MoleculeError(code, 'x', { retryable: true })
    for (const usedTool of [true, false]) {
      const outcome = outcomeOf(error, {}, usedTool)
      assert.deepEqual([code, outcome.type === 'retry' && outcome.interrupted], [code, usedTool])
    }
  }
})

const retryable = (code: ErrorCode, details = {}) => new MoleculeError(code, 'why', { retryable: true, details })
const outcomeWith = (error: MoleculeError, more: Partial<FailedTurn> = {}) =>
  outcomeOfFailure({ lease: leaseOf(), error, maxAttempts: 4, usedTool: false, ...more })

test('a lost session comes again at once; its failure is the plain sentence, and nothing was interrupted', () => {
  assert.deepEqual(outcomeWith(new MoleculeError('session_lost', 'no such session')), {
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
  assert.deepEqual(outcomeWith(exit, { maxAttempts: 1 }), { type: 'dead', failure: { ...plain, ...spoken } })
  assert.deepEqual(outcomeWith(exit), {
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
    const outcome = outcomeWith(retryable(code), { usedTool })
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
  const usedUp = new MoleculeError('quota_exhausted', 'no credit', { details: { resetAfterMs: HOUR_MS } })
  const waiting = outcomeWith(usedUp, { usedTool: true, rateLimitPatienceMs: 0 })
  assert.deepEqual(waiting.type === 'retry' && [waiting.interrupted, waiting.parked, waiting.reason], [
    true,
    true,
    'failure',
  ])
})

test('RE-3 only a turn that a shutdown stopped is released: by its exit, its end or its start, if it is retryable', () => {
  const typeOf = (code: ErrorCode, shuttingDown: boolean) => outcomeWith(retryable(code), { shuttingDown }).type
  for (const code of ['exit', 'no_end', 'spawn_failed'] as const) {
    assert.equal(typeOf(code, true), 'released', code)
    assert.equal(typeOf(code, false), 'retry', code)
  }
  assert.equal(typeOf('timeout', true), 'retry')
})

test('RT-14 only a rate limit waits for its patience: other errors, and limits without a retry, do not', () => {
  const last = { lease: leaseOf({ failures: 3 }), rateLimitPatienceMs: HOUR_MS }
  assert.equal(outcomeWith(retryable('exit'), last).type, 'dead')
  assert.equal(outcomeWith(new MoleculeError('rate_limited', 'no'), last).type, 'dead')
  for (const code of ['rate_limited', 'overloaded'] as const) {
    const outcome = outcomeWith(retryable(code), last)
    assert.deepEqual(outcome.type === 'retry' && [outcome.parked, outcome.afterMs], [true, 60_000], code)
  }
})

test('RT-14 the last millisecond of the patience is still a wait; a message that never waited does not say so', () => {
  const tried = (sinceMs: number, rateLimitPatienceMs: number) => {
    const earlier = sinceMs === 0 ? {} : { parked: { times: 1, sinceMs } }
    return outcomeWith(limited(), { lease: leaseOf({ failures: 3, ...earlier }), rateLimitPatienceMs })
  }
  const last = tried(HOUR_MS - 1, HOUR_MS)
  assert.deepEqual(last.type === 'retry' && last.afterMs, 1)
  const sentenceOf = (outcome: ReturnType<typeof tried>) => outcome.type === 'dead' && outcome.failure.sentence
  assert.equal(sentenceOf(tried(0, 0)), "the model provider's rate limit is reached")
  assert.match(String(sentenceOf(tried(1, 1))), /^given up after 1 s \(rate_limit_patience\): the model/)
})

test('a time that the provider names: zero is at once, a part of a millisecond is one, a negative one is none', () => {
  const afterMs = (resetAfterMs: unknown) => {
    const outcome = outcomeWith(retryable('overloaded', { resetAfterMs }))
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  }
  assert.deepEqual([0, 0.5, 1500.2, -1, '7'].map(afterMs), [0, 1, 1501, 5000, 5000])
})

test('RT-14 a used-up quota on a platform that cannot park is a plain retry at the named time', () => {
  const outcome = outcomeWith(retryable('quota_exhausted', { resetAfterMs: 90_000 }))
  assert.deepEqual(outcome.type === 'retry' && [outcome.afterMs, outcome.parked], [90_000, undefined])
  const days = outcomeWith(retryable('quota_exhausted', { resetAfterMs: 25 * HOUR_MS }))
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
  const wait = { afterMs: 10_000, said: { parts: [{ text }] } }
  assert.deepEqual(exhaustedOutcome(nested(10)), { type: 'released', interrupted: false, parked: wait })
  assert.deepEqual(exhaustedOutcome(nested(3), true), { type: 'released', interrupted: true, parked: wait })
  assert.equal(exhaustedOutcome(nested(11)), undefined)
})

test('RT-14 the waits for a rate limit grow to ten minutes and stay there', () => {
  const error = new MoleculeError('rate_limited', 'slow down', { retryable: true })
  const waitMs = (times: number) => {
    const patience = { maxAttempts: 4, rateLimitPatienceMs: 24 * 3600_000 }
    const outcome = outcomeOfFailure({
      lease: leaseOf({ failures: 3, parked: { times, sinceMs: 1 } }),
      error,
      usedTool: false,
      ...patience,
    })
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  }
  assert.deepEqual([1, 2, 3, 4, 5, 100].map(waitMs), [120_000, 300_000, 600_000, 600_000, 600_000, 600_000])
})
