import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureFromAnswer, failureFromRpc, platformUnreachable } from './platform-failure.ts'

const shape = ({ code, message, retryable, details }: ReturnType<typeof failureFromRpc>) => ({
  code,
  message,
  retryable,
  details,
})

const fromAnswer = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  shape(
    failureFromAnswer(new Response(null, { status, headers }), typeof body === 'string' ? body : JSON.stringify(body)),
  )

const fromRpc = (error: unknown) => shape(failureFromRpc(error))

test('an answer without an error of the platform is known by its status, and only some are retryable', () => {
  const table: [status: number, code: string, retryable: boolean][] = [
    [400, 'invalid_request', false],
    [401, 'unauthenticated', false],
    [404, 'not_found', false],
    [418, 'internal', false],
    [429, 'queue_full', true],
    [500, 'internal', false],
    [502, 'backend_missing', true],
    [503, 'store_unavailable', true],
    [504, 'timeout', true],
    [507, 'disk_low', false],
  ]
  for (const [status, code, retryable] of table) {
    const message = `the answer is HTTP ${status} without a reason`
    const details = { status, requestId: null }
    for (const body of [
      '<html>',
      '',
      'null',
      '{}',
      '{"error":{}}',
      '{"error":{"message":7},"reason":"x"}',
      '{"reason":7}',
    ])
      assert.deepEqual(fromAnswer(status, body), { code, message, retryable, details }, body)
  }
})

test('an error of the platform keeps its code, its message with the hint, its request id and its problems', () => {
  const problems = [{ line: 1, column: 2, message: 'p' }]
  const error = { code: 'bad_config', message: 'no', hint: 'look', problems }
  assert.deepEqual(fromAnswer(400, { error }, { 'X-Request-Id': 'r', 'Retry-After': '1' }), {
    code: 'bad_config',
    message: 'no: look',
    retryable: false,
    details: { status: 400, requestId: 'r', retryAfterMs: 1000, problems },
  })
  const strange = { code: 'constructor', message: 'no', hint: 7, problems: 'p' }
  assert.deepEqual(fromAnswer(404, { error: strange }), {
    code: 'not_found',
    message: 'no',
    retryable: false,
    details: { status: 404, requestId: null },
  })
  assert.equal(fromAnswer(503, { reason: 'it starts' }).message, 'it starts')
})

test('a time to wait is in seconds from zero on', () => {
  const waits = ['0', '0.5', '1', '600', '-1', 'Wed, 21 Oct 2026 07:28:00 GMT'].map(
    (seconds) => fromAnswer(429, '', { 'Retry-After': seconds }).details['retryAfterMs'],
  )
  assert.deepEqual(waits, [0, 500, 1000, 600_000, undefined, undefined])
})

test('PL-5 an error of JSON-RPC is known by the reason of its first entry, ours or of the binding', () => {
  const table: [reason: unknown, code: string, retryable: boolean][] = [
    ['TASK_NOT_FOUND', 'not_found', false],
    ['QUEUE_FULL', 'queue_full', true],
    ['STORE_UNAVAILABLE', 'store_unavailable', true],
    ['AGENT_FAILED', 'agent_failed', true],
    ['TIMEOUT', 'timeout', true],
    ['INTERNAL', 'internal', false],
    ['WORKSPACE_NOT_FOUND', 'not_found', false],
    ['PARSE_ERROR', 'invalid_request', false],
    ['INVALID_REQUEST', 'invalid_request', false],
    ['METHOD_NOT_FOUND', 'unsupported_operation', false],
    ['VERSION_NOT_SUPPORTED', 'unsupported_operation', false],
    ['WEATHER', 'internal', false],
    [undefined, 'internal', false],
  ]
  for (const [reason, code, retryable] of table) {
    const data = [{ reason }, { reason: 'FORBIDDEN', metadata: { retryAfterMs: 5 } }]
    assert.deepEqual(fromRpc({ code: -1, message: 'no', data }), { code, message: 'no', retryable, details: {} })
  }
  assert.equal(fromRpc({ message: 'no', data: 'x' }).code, 'internal')
})

test('PL-5 an error of JSON-RPC keeps its time to wait, and an empty one is named', () => {
  const details = [0, '0', 1, '2000', -1, 'x', undefined].map(
    (retryAfterMs) => fromRpc({ message: 'no', data: [{ reason: 'QUEUE_FULL', metadata: { retryAfterMs } }] }).details,
  )
  const waits = [0, 0, 1, 2000].map((retryAfterMs) => ({ retryAfterMs }))
  assert.deepEqual(details, [...waits, {}, {}, {}])
  const empty = { code: 'internal', message: 'the platform sent an empty answer', retryable: false, details: {} }
  for (const error of [undefined, null, {}]) assert.deepEqual(fromRpc(error), empty)
})

test('a platform that cannot be reached is named with the cause; a late answer says so; both are retryable', () => {
  const url = 'http://p.test'
  const unreachable = (reason: string) => ({
    code: 'timeout',
    retryable: true,
    details: { url },
    message: `the platform at http://p.test cannot be reached (${reason}); start it there with "molecule up"`,
  })
  const coded = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  assert.deepEqual(shape(platformUnreachable(url, coded, false)), unreachable('ECONNREFUSED'))
  assert.deepEqual(shape(platformUnreachable(url, new Error('cut'), false)), unreachable('cut'))
  assert.deepEqual(shape(platformUnreachable(url, coded, true)), {
    code: 'timeout',
    retryable: true,
    details: { url },
    message: 'the platform at http://p.test did not answer in time',
  })
  assert.equal(platformUnreachable(url, coded, true).cause, coded)
  const untrusted = Object.assign(new TypeError('fetch failed'), { cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
  const { message, retryable } = platformUnreachable(url, untrusted, false)
  assert.match(message, /\(DEPTH_ZERO_SELF_SIGNED_CERT\); its certificate is not trusted .* NODE_EXTRA_CA_CERTS$/)
  assert.equal(retryable, true)
})
