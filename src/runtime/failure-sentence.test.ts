import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import { failureSentence } from './failure-sentence.ts'

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
