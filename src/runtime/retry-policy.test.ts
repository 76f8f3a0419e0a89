import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo, SENDER } from '../../test/fakes/letters.ts'
import { MoleculeError } from '../errors.ts'
import type { Lease, Outcome } from '../inbox/inbox.ts'
import { outcomeOfFailure } from './retry-policy.ts'

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
const passing = (details = {}) => new MoleculeError('exit', 'exit 3', { retryable: true, details })
const outcomeOf = (error: MoleculeError, more: Partial<Lease> = {}, usedTool = false): Outcome =>
  outcomeOfFailure({ lease: lease(more), error, maxAttempts: 4, usedTool })

test('a retryable error is retried after 5, 10 and 20 s and then becomes a dead letter', () => {
  const waits = [0, 1, 2, 3].map((failures) => {
    const outcome = outcomeOf(passing(), { failures })
    return outcome.type === 'retry' ? outcome.afterMs : outcome.type
  })
  assert.deepEqual(waits, [5000, 10_000, 20_000, 'dead'])
})

test('the failure of a retry says which attempt, of how many, when and why', () => {
  const outcome = outcomeOf(passing(), { failures: 1 })
  assert.equal(outcome.type === 'retry' && outcome.failure.message, 'attempt 3 of 4 in 10 s: exit 3')
})

test('a retry waits as long as the provider asks, up to six hours', () => {
  const after = (resetAfterMs: number) =>
    outcomeOf(new MoleculeError('rate_limited', 'slow down', { retryable: true, details: { resetAfterMs } }))
  const soon = after(90_000)
  assert.equal(soon.type === 'retry' && soon.afterMs, 90_000)
  assert.equal(after(7 * 3600_000).type, 'dead')
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
    outcomeOfFailure({ lease: lease({ failures: 3 }), error, maxAttempts: 4, usedTool: true, shuttingDown: true })
  assert.deepEqual(stopped(passing({ signal: 'SIGTERM' })), { type: 'released', interrupted: true })
  assert.equal(stopped(new MoleculeError('rate_limited', 'slow down', { retryable: true })).type, 'dead')
  assert.equal(stopped(new MoleculeError('exit', 'bad usage')).type, 'dead')
})
