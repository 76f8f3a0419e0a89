import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ProcessResult } from '../../../process/processes.ts'
import { classifyAgentError, processFailure, unexpectedExit } from './agent-errors.ts'
import { parseResetDelayMs } from './reset-time.ts'

const NOW = Date.parse('2026-11-15T12:00:00Z')
const SECOND = 1000
const HOUR = 3600 * SECOND
const facts = { command: 'claude', timeout: '5m', outputBytesMax: 1000, nowMs: NOW }

const read = (text: string, status?: number) => {
  const error = classifyAgentError({ text, status, nowMs: NOW })
  return error && [error.code, error.retryable]
}

test('the status decides, whatever the text says', () => {
  for (const status of [401, 403]) assert.deepEqual(read('x', status), ['auth_failed', false])
  for (const text of ['OAuth token has expired', 'token refresh failed', 'temporarily unavailable', 'try again later'])
    assert.deepEqual(read(text, 401), ['auth_failed', true], text)
  assert.deepEqual(read('your key is invalid', 403), ['auth_failed', false])
  for (const text of ['Please log in again', 'run `codex login`', 'Re-authenticate the provider', 'Incorrect API key'])
    assert.deepEqual(read(text, 401), ['auth_failed', false], text)
  assert.deepEqual(read('x', 429), ['rate_limited', true])
  for (const status of [503, 529]) assert.deepEqual(read('x', status), ['overloaded', true])
  for (const status of [500, 502, 504]) assert.deepEqual(read('x', status), ['provider_failed', true])
  for (const status of [400, 404, 422]) assert.deepEqual(read('x', status), ['bad_request', false])
})

test('without a status the text decides, and an unknown text gives no error', () => {
  assert.deepEqual(read('exceeded retry limit, last status: 429'), ['rate_limited', true])
  assert.deepEqual(read('The model is overloaded'), ['overloaded', true])
  assert.deepEqual(read('unexpected status 401 Unauthorized'), ['auth_failed', false])
  assert.deepEqual(read('Not logged in. Please run /login'), ['auth_failed', false])
  assert.deepEqual(read('no rollout found for thread id x'), ['session_lost', false])
  assert.deepEqual(read('Session not found'), ['session_lost', false])
  assert.deepEqual(read('API Error: 400 prompt is too long: 210000 tokens', 400), ['context_full', false])
  assert.equal(read('cannot open file'), undefined)
})

test('RT-14 credit or quota that is used up is no rate limit, and waits only for a named time', () => {
  assert.deepEqual(read('Your credit balance is too low', 400), ['quota_exhausted', false])
  assert.deepEqual(read('{"code":"insufficient_quota"}', 429), ['quota_exhausted', false])
  const error = classifyAgentError({ text: 'insufficient_quota, resets in 2 hours', status: 429, nowMs: NOW })
  assert.deepEqual([error?.retryable, error?.details['resetAfterMs']], [true, 2 * HOUR])
})

const nextLocalTime = (hour: number, minute: number) => {
  const at = new Date(NOW).setHours(hour, minute, 0, 0)
  return at >= NOW ? at : at + 24 * HOUR
}

test('the reset time is read from the texts of providers', () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ['Claude AI usage limit reached|1794747600', 1_794_747_600_000 - NOW],
    ['{"resets_at": 1794747600}', 1_794_747_600_000 - NOW],
    ['try again in 1m30s', 90 * SECOND],
    ['Please try again in 6.5s.', 6500],
    ['retry after 20 seconds', 20 * SECOND],
    ['retry-after: 7', 7 * SECOND],
    ['resets in 3 hours 20 minutes', 3 * HOUR + 20 * 60 * SECOND],
    ['Retry in 250 ms', 250],
    ['limit reached, resets at 2026-11-15T13:30:00Z', 1.5 * HOUR],
    ['5-hour limit reached, resets 3pm (UTC)', 3 * HOUR],
    ['limit reached, resets at 11:30 UTC', 23.5 * HOUR],
    ['limit reached, resets 3pm (Mars/Olympus)', undefined],
    ['or try again at Nov 17th, 2026 1:26 AM.', new Date(2026, 10, 17, 1, 26).getTime() - NOW],
    ['or try again at 11:59 PM.', nextLocalTime(23, 59) - NOW],
    ['too many requests', undefined],
    ['attempt 3 of 4', undefined],
  ]
  for (const [text, expected] of cases) assert.equal(parseResetDelayMs(text, NOW), expected, text)
  const error = classifyAgentError({ text: 'try again in 20s', status: 429, nowMs: NOW })
  assert.equal(error?.details['resetAfterMs'], 20 * SECOND)
})

test('no text breaks the parser of reset times, and no result is negative', () => {
  const words = fc.array(
    fc.oneof(fc.string(), fc.constantFrom('resets', 'at', 'retry', 'in', '3pm', '1m', '|', '9', '2026-11-15T12:00')),
  )
  fc.assert(
    fc.property(words, (parts) => {
      const after = parseResetDelayMs(parts.join(' '), NOW)
      assert.ok(after === undefined || after >= 0)
    }),
    { numRuns: 500 },
  )
})

const ended = (more: Partial<ProcessResult>, stderr = ''): ProcessResult => ({
  end: 'exited',
  exitCode: 0,
  signal: null,
  stdout: new Uint8Array(),
  stderrTail: new TextEncoder().encode(stderr),
  stderrCut: false,
  ...more,
})

test('the failure of a process: none, a missing program, its stderr, or its exit code', () => {
  assert.equal(processFailure(ended({}), facts), undefined)
  const cause = Object.assign(new Error('spawn claude ENOENT'), { code: 'ENOENT' })
  assert.equal(processFailure(ended({ end: 'spawn_failed', cause }), facts)?.code, 'backend_missing')
  const folder = new Error('the working folder /x does not exist', { cause })
  assert.equal(processFailure(ended({ end: 'spawn_failed', cause: folder }), facts)?.code, 'spawn_failed')
  assert.equal(processFailure(ended({ exitCode: 1 }, 'status 429'), facts)?.code, 'rate_limited')
  const plain = processFailure(ended({ exitCode: 3 }, 'no such luck'), facts)
  assert.deepEqual([plain?.code, plain?.details['exitCode'], plain?.details['stderr']], ['exit', 3, 'no such luck'])
  assert.equal(processFailure(ended({ end: 'timed_out' }), facts)?.code, 'timeout')
})

test('a warm process that ends in a turn fails it as retryable, also with exit code 0', () => {
  for (const result of [ended({}), ended({ exitCode: null, signal: 'SIGKILL' }), ended({ end: 'canceled' })]) {
    const { code, retryable } = unexpectedExit(result, facts)
    assert.deepEqual([code, retryable], ['exit', true])
  }
})
