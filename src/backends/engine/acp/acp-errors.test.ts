import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RpcError } from '../json-rpc.ts'
import { agentError, errorInAnswer, resumeError } from './acp-errors.ts'

const NOW_MS = Date.UTC(2026, 10, 15)
const body = (code: number, message: string) => JSON.stringify({ error: { code, message, status: 'X' } })

for (const [title, error, code, retryable] of [
  ["gemini's code is the status", new RpcError(400, body(400, 'fake')), 'bad_request', false],
  ["gemini's 429", new RpcError(429, body(429, 'Please retry in 20s')), 'rate_limited', true],
  ["gemini's 500", new RpcError(500, body(500, 'oops')), 'provider_failed', true],
  ["claude's sentence", new RpcError(-32603, 'Internal error: API Error: 401 invalid x-api-key'), 'auth_failed', false],
  [
    "opencode's sentence",
    new RpcError(-32603, 'Internal error: fake 400', { service: 'session' }),
    'provider_failed',
    true,
  ],
  ["ACP's own code for a login", new RpcError(-32000, 'Authentication required'), 'auth_failed', false],
  ["ACP's own code for an unknown session", new RpcError(-32002, 'Resource not found: x'), 'session_lost', false],
  ['a context that is full', new RpcError(-32603, 'prompt is too long: 250000 tokens'), 'context_full', false],
] as const) {
  test(`AG-7 ${title}: ${code}`, () => {
    const read = agentError(error, NOW_MS)
    assert.deepEqual([read.code, read.retryable], [code, retryable])
  })
}

test('a rate limit has the delay that the agent names', () => {
  const read = agentError(new RpcError(429, body(429, 'Please retry in 20s')), NOW_MS)
  assert.equal(read.details['resetAfterMs'], 20_000)
})

test('RT-5 a session that cannot be loaded is lost, in whatever words the agent says so', () => {
  const details = 'Invalid session identifier "x".'
  for (const error of [
    new RpcError(-32603, 'Internal error', { details }),
    new RpcError(-32603, 'Internal error: OpenCode service failure', { service: 'session' }),
    new RpcError(-32002, 'Resource not found: x'),
  ]) {
    assert.equal(resumeError(error, 'x', NOW_MS).code, 'session_lost')
  }
  assert.equal(resumeError(new RpcError(-32000, 'Authentication required'), 'x', NOW_MS).code, 'auth_failed')
  assert.equal(resumeError(new RpcError(-32603, 'insufficient_quota'), 'x', NOW_MS).code, 'quota_exhausted')
  assert.equal(resumeError(new Error('broken'), 'x', NOW_MS).code, 'internal')
})

test('an error that codex-acp sends as the answer is classified like any other', () => {
  assert.equal(errorInAnswer(body(429, 'slow down'), NOW_MS).code, 'rate_limited')
  assert.equal(errorInAnswer(body(400, 'no'), NOW_MS).code, 'bad_request')
  assert.equal(errorInAnswer('', NOW_MS).code, 'provider_failed')
})
