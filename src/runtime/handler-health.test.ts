import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { leaseOf } from '../../test/fakes/letters.ts'
import { type ManualClock, manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Lease, Outcome } from '../inbox/worker.ts'
import { type BrokenHandler, createHandlerHealth } from './handler-health.ts'
import { outcomeOfFailure } from './retry-policy.ts'

const exit = (exitCode: number) =>
  new MoleculeError('exit', `exit ${exitCode}`, { retryable: ![126, 127].includes(exitCode), details: { exitCode } })
const done: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'ok' }], artifacts: [] }

function setUp(t: TestContext, clock: ManualClock = manualClock()) {
  const shown: (BrokenHandler | undefined)[] = []
  const missing: { reason?: MoleculeError } = {}
  const handler = createHandlerHealth({
    clock,
    async check() {
      if (missing.reason !== undefined) throw missing.reason
    },
    onChange: (broken) => void shown.push(broken),
  })
  t.after(() => handler.close())
  const pass = async (ms: number) => {
    clock.advance(ms)
    await new Promise(setImmediate)
  }
  /** One turn, from its begin to its end. */
  const run = (lease: Lease, error?: MoleculeError, isKept = true) => {
    handler.began(lease)
    const given = { lease, maxAttempts: 4, usedTool: false, handler, isKept }
    const outcome = error === undefined ? done : outcomeOfFailure({ ...given, error })
    handler.ended(lease, outcome)
    return outcome
  }
  return { handler, shown, missing, pass, run }
}

test('CN-3 a command that is not there, or is not executable, costs no attempt and stops the handler', (t) => {
  const errors = [exit(127), exit(126), new MoleculeError('backend_missing', 'x'), new MoleculeError('bad_config', 'x')]
  for (const error of [...errors, new MoleculeError('spawn_failed', 'x', { retryable: true })]) {
    const { handler, run } = setUp(t)
    assert.equal(handler.capacity(), undefined)
    const outcome = run(leaseOf({ messageId: 'a', conversationId: 'a', failures: 3 }), error)
    assert.ok(outcome.type === 'released' && !outcome.interrupted, error.code)
    assert.equal(outcome.parked?.afterMs, 0)
    assert.match(outcome.parked?.said.parts[0]?.text ?? '', /^waiting: the handler .* cannot run: .*; next try at /)
    assert.equal(handler.capacity(), 0)
  }
})

test('CN-3 after 5, 10, 20, 40, 60, 60 s a broken handler is checked and then gets one message', async (t) => {
  const { handler, missing, pass, run, shown } = setUp(t)
  run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127))
  for (const seconds of [5, 10, 20, 40, 60]) {
    await pass(seconds * 1000 - 1)
    assert.equal(handler.capacity(), 0)
    await pass(1)
    assert.equal(handler.capacity(), 1, `${seconds} s`)
    run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127))
  }
  missing.reason = new MoleculeError('backend_missing', 'no such program')
  await pass(60_000)
  assert.equal(handler.capacity(), 0)
  assert.match(shown.at(-1)?.reason ?? '', /program is missing/)
  delete missing.reason
  await pass(60_000)
  run(leaseOf({ messageId: 'a', conversationId: 'a' }))
  assert.deepEqual([handler.capacity(), shown.at(-1)], [undefined, undefined])
})

test('CN-3 a handler that stays broken is tried again also where the time of day went back', async (t) => {
  const clock = manualClock()
  let backMs = 0
  const { handler, missing, pass, run } = setUp(t, { ...clock, nowMs: () => clock.nowMs() - backMs })
  missing.reason = new MoleculeError('backend_missing', 'no such program')
  run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127))
  backMs = 3600_000
  await pass(5_000)
  delete missing.reason
  await pass(10_000)
  assert.equal(handler.capacity(), 1)
})

test('CN-3 a message whose command is missing is at fault once the handler answers a later one', async (t) => {
  const { handler, pass, run } = setUp(t)
  const early = leaseOf({ messageId: 'early', conversationId: 'early' })
  handler.began(early)
  run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127))
  // This turn began before the failure, so its answer says nothing of the handler as it is now.
  handler.ended(early, done)
  assert.equal(handler.capacity(), 0)
  const afterMs: number[] = []
  for (let tries = 2; tries <= 6; tries++) {
    await pass(60_000)
    const outcome = run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127))
    afterMs.push(outcome.type === 'released' ? (outcome.parked?.afterMs ?? -1) : -1)
  }
  // The sixth try lets another message go first.
  assert.deepEqual(afterMs, [0, 0, 0, 0, 120_000])
  await pass(60_000)
  run(leaseOf({ messageId: 'b', conversationId: 'b' }))
  assert.equal(handler.capacity(), undefined)
  assert.equal(run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(127)).type, 'dead')
})

test('CN-3 a message that the handler failed is not at fault when the handler is gone', (t) => {
  const { run } = setUp(t)
  run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(1))
  run(leaseOf({ messageId: 'b', conversationId: 'b' }))
  assert.equal(run(leaseOf({ messageId: 'a', conversationId: 'a', failures: 1 }), exit(127)).type, 'released')
})

test('CN-3 a message that fails is kept for a day while the handler answers nothing else', (t) => {
  const { run } = setUp(t)
  const waits: (number | string)[] = []
  for (let failures = 0; failures < 31; failures++) {
    const outcome = run(leaseOf({ messageId: 'a', conversationId: 'a', failures: failures }), exit(1))
    waits.push(outcome.type === 'retry' ? outcome.afterMs / 1000 : outcome.type)
  }
  assert.deepEqual(waits.slice(0, 8), [5, 10, 20, 60, 300, 900, 1800, 3600])
  assert.equal(waits.at(-1), 'dead')
  const hours = waits.reduce<number>((sum, each) => sum + (typeof each === 'number' ? each : 0), 0) / 3600
  assert.ok(hours > 23 && hours < 25, `${hours} h`)
})

test('CN-3 four attempts are all where the handler answers others, where max_attempts is set, or a retry cannot help', (t) => {
  const other = setUp(t)
  other.run(leaseOf({ messageId: 'a', conversationId: 'a' }), exit(1))
  other.run(leaseOf({ messageId: 'b', conversationId: 'b' }))
  assert.equal(other.run(leaseOf({ messageId: 'a', conversationId: 'a', failures: 3 }), exit(1)).type, 'dead')
  assert.equal(setUp(t).run(leaseOf({ messageId: 'a', conversationId: 'a', failures: 3 }), exit(1), false).type, 'dead')
  assert.equal(
    setUp(t).run(leaseOf({ messageId: 'a', conversationId: 'a' }), new MoleculeError('too_large', 'x')).type,
    'dead',
  )
})
