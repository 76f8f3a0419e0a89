import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { leaseOf } from '../../test/fakes/letters.ts'
import { present } from '../../test/harness/present.ts'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Failure, Outcome } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { explainFailure, failureSentence } from './failure-sentence.ts'

test('RT-7 each kind of failure has its category', () => {
  const category = (code: ErrorCode, details = {}) =>
    failureSentence(new MoleculeError(code, 'x', { details }))?.category
  assert.equal(category('rate_limited'), 'rate_limited')
  assert.equal(category('quota_exhausted'), 'quota_exhausted')
  assert.equal(category('auth_failed'), 'auth_failed')
  assert.equal(category('session_lost'), 'session_error')
  assert.equal(category('timeout'), 'timeout')
  assert.equal(category('exit', { exitCode: 127 }), 'exit_127')
  assert.equal(category('exit', { exitCode: null, signal: 'SIGKILL' }), 'exit_signal')
  assert.equal(category('empty_response'), 'empty_response')
  assert.equal(category('backend_missing'), 'backend_missing')
  assert.equal(category('bad_attachment'), 'bad_attachment')
  assert.equal(category('internal'), 'internal')
  assert.equal(category('agent_failed'), 'agent_failed')
  assert.equal(category('agent_failed', { forCaller: true }), undefined, 'the agent told its caller')
  assert.equal(category('agent_failed', { drift: 'option --acp missing' }), 'incompatible')
})

test('RT-7 the sentence contains nothing of the error message and its details', () => {
  const codes = fc.constantFrom<ErrorCode>(
    'exit',
    'timeout',
    'internal',
    'auth_failed',
    'bad_config',
    'stale_lease',
    'agent_failed',
    'unreadable_output',
  )
  const property = fc.property(codes, fc.stringMatching(/^[Z9]{12,40}$/), (code, raw) => {
    const details = { drift: raw, stdout: raw, stderr: raw, signal: raw, exitCode: raw, timeout: raw }
    const described = failureSentence(new MoleculeError(code, raw, { details }))
    assert.ok(!JSON.stringify(described).includes(raw))
  })
  fc.assert(property)
})

const LEASE = leaseOf()

test('RT-7 the category of a failure is its code, except for a lost session and for errors that are not listed', () => {
  const own: readonly ErrorCode[] = [
    ...(['rate_limited', 'quota_exhausted', 'auth_failed', 'overloaded', 'provider_unreachable'] as const),
    ...(['unknown_model', 'bad_request', 'provider_failed', 'context_full', 'timeout', 'empty_response'] as const),
    ...(['no_end', 'backend_missing', 'spawn_failed', 'bad_config', 'max_turns', 'too_large'] as const),
    ...(['bad_attachment', 'canceled'] as const),
  ]
  const categoryOf = (code: ErrorCode) => failureSentence(new MoleculeError(code, 'x'))?.category
  assert.deepEqual(own.map(categoryOf), own)
  assert.deepEqual((['session_lost', 'internal', 'stale_lease'] as const).map(categoryOf), [
    'session_error',
    'internal',
    'internal',
  ])
  assert.equal(categoryOf('vetoed'), undefined)
  const sentences = own.map((code) => failureSentence(new MoleculeError(code, 'x'))?.sentence)
  assert.equal(new Set(sentences).size, own.length, 'each has a sentence of its own')
})

test('RT-7 an exit names its code or its signal, and what the codes of a shell mean', () => {
  const exit = (details: object) => failureSentence(new MoleculeError('exit', 'x', { details: { ...details } }))
  const described = [
    exit({ exitCode: 127 }),
    exit({ exitCode: 126 }),
    exit({ exitCode: 12 }),
    exit({ exitCode: null, signal: 'SIGKILL' }),
    exit({ exitCode: null, signal: 'a secret' }),
    exit({}),
  ].map((each) => [each?.category, each?.sentence])
  assert.deepEqual(described, [
    ['exit_127', 'a command of the agent was not found (exit code 127)'],
    ['exit_126', 'a command of the agent is not executable (exit code 126)'],
    ['exit_12', "the agent's program ended with exit code 12"],
    ['exit_signal', "the agent's program was killed by SIGKILL"],
    ['exit_signal', "the agent's program was killed"],
    ['exit_signal', "the agent's program was killed"],
  ])
})

/** Explains the failure of a dead letter, with `hunter22` as the secret. */
function explain(failure: Failure) {
  const logged: [object, string][] = []
  const log = { ...silentLog, warn: (fields: object, message: string) => void logged.push([fields, message]) }
  const mask = (text: string) => text.replaceAll('hunter22', '[hidden]')
  const outcome = explainFailure({ type: 'dead', failure }, LEASE, { log, mask })
  assert.ok(outcome.type === 'dead')
  return { stored: outcome.failure, logged }
}

test('RT-7 the stored failure has category and id in its sentence, and masked texts for the owner; the log has all', () => {
  const details = { exitCode: 3, stderr: 'bad hunter22' }
  const failure = { code: 'exit', message: 'exit 3: bad hunter22', details, category: 'exit_3', sentence: 'it ended' }
  const { stored, logged } = explain(failure)
  const { id } = stored
  assert.match(id ?? '', /^err_[0-9A-Z]{26}$/)
  assert.deepEqual(stored, {
    code: 'exit',
    message: 'exit 3: bad [hidden]',
    id,
    category: 'exit_3',
    details: { exitCode: 3, stderr: 'bad [hidden]' },
    sentence: `it ended (exit_3, ${id})`,
  })
  const masked = { ...failure, message: stored.message, details: stored.details }
  const fields = { errorId: id, workspaceId: 'ws_1', taskId: 't', messageId: 'm', outcome: 'dead', ...masked }
  assert.deepEqual(logged, [[fields, 'a turn failed']])
})

test('CN-6 a turn that was stopped is logged, and is no warning', () => {
  const { logged } = explain({ code: 'canceled', message: 'command "sleep" was canceled' })
  assert.deepEqual(logged, [])
})

test('RT-7 a failure in the words of the agent gets no sentence of the platform', () => {
  const { stored } = explain({ code: 'agent_failed', message: 'I could not' })
  assert.deepEqual(present(stored), { code: 'agent_failed', message: 'I could not', id: stored.id })
})

test('RT-7 an outcome that is no failure is not touched and not logged', () => {
  const log = { ...silentLog, warn: () => assert.fail('it is no failure') }
  const released: Outcome = { type: 'released', interrupted: false }
  assert.equal(explainFailure(released, LEASE, { log, mask: (text) => text }), released)
})

test('RT-7 the last 500 characters of stderr are stored, also inside of the message, never half a character', () => {
  const storedOf = (stderr: string) =>
    explain({ code: 'exit', message: `exit 1: ${stderr}`, details: { stderr } }).stored
  const fits = `ab${'x'.repeat(498)}`
  assert.equal(storedOf(fits).details?.['stderr'], fits)
  assert.equal(storedOf(fits).message, `exit 1: ${fits}`)
  const long = `b${'x'.repeat(500)}`
  assert.equal(storedOf(long).details?.['stderr'], `...${'x'.repeat(500)}`)
  assert.equal(storedOf(long).message, `exit 1: ...${'x'.repeat(500)}`)
  assert.equal(storedOf(`😀${'x'.repeat(499)}`).details?.['stderr'], `...${'x'.repeat(499)}`)
})

test('RE-13 a failure text that is too long is cut, and the cut leaves no half of a secret', () => {
  const reason = `hunter22 ${'x'.repeat(65_522)} hunter22 and more`
  const { message } = explain({ code: 'agent_failed', message: reason, details: { text: reason } }).stored
  assert.match(message, /^\[hidden\] x+\.\.\. \(65549 characters\)$/)
})
