/** JSON-RPC requests, refusals, and the tables of errors and methods. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MoleculeError } from '../errors.ts'
import { jsonRpcFailure, jsonRpcSuccess, methodOf, parseJsonRpc, toJsonRpcError } from './json-rpc.ts'
import { JSON_RPC_CODES, WIRE_ERRORS } from './wire-errors.ts'

const request = { jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: 't' } }

function refused(body: unknown) {
  const parsed = parseJsonRpc(body)
  assert.ok(!parsed.ok)
  return parsed.response
}

test('a request is read from text, from bytes and from parsed JSON', () => {
  const text = JSON.stringify(request)
  for (const body of [text, Buffer.from(text), request]) assert.deepEqual(parseJsonRpc(body), { ok: true, request })
  for (const id of ['a', 0, null, undefined]) assert.ok(parseJsonRpc({ ...request, id }).ok)
})

test('a body that is not JSON is a parse error that does not quote the body', () => {
  for (const body of ['', '{', '{"secret":', Buffer.from([0x22, 0xff, 0x22])]) {
    const { id, error } = refused(body)
    assert.equal(id, null)
    assert.equal(error.code, -32700)
    assert.ok(!error.message.includes('secret'))
  }
})

test('JSON that is no request is refused with its id, if it has one', () => {
  const table: [unknown, string | number | null, RegExp][] = [
    [[request], null, /batch/],
    [null, null, /The body must be/],
    ['"text"', null, /The body must be/],
    [{ ...request, jsonrpc: '1.0' }, 7, /^jsonrpc must be "2\.0"/],
    [{ ...request, id: 'a', method: 5 }, 'a', /^method must be a string/],
    [{ ...request, method: '' }, 7, /^method must not be empty/],
    [{ ...request, method: 'x'.repeat(129) }, 7, /at most 128 characters/],
    [{ ...request, id: {} }, null, /^id must be/],
    [`{"jsonrpc":"2.0","id":7,"method":"a","params":${'['.repeat(64)}${']'.repeat(64)}}`, 7, /deeper than 64 levels/],
  ]
  for (const [body, id, reason] of table) {
    const response = refused(body)
    assert.equal(response.id, id)
    assert.equal(response.error.code, -32600)
    assert.match(response.error.message, reason)
  }
})

test('any value is a request or a refusal', () => {
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.string(), fc.uint8Array()), (body) => {
      const parsed = parseJsonRpc(body)
      if (!parsed.ok) assert.ok([-32700, -32600].includes(parsed.response.error.code))
    }),
  )
})

test('every error code has a wire form, with the code of A2A where A2A has one', () => {
  assert.deepEqual(WIRE_ERRORS.not_found, { code: -32001, status: 404, reason: 'TASK_NOT_FOUND' })
  assert.deepEqual(WIRE_ERRORS.not_cancelable, { code: -32002, status: 400, reason: 'TASK_NOT_CANCELABLE' })
  assert.deepEqual(WIRE_ERRORS.unsupported_operation, { code: -32004, status: 400, reason: 'UNSUPPORTED_OPERATION' })
  assert.deepEqual(WIRE_ERRORS.idempotency_conflict, { code: -32602, status: 409, reason: 'IDEMPOTENCY_CONFLICT' })
  assert.deepEqual(WIRE_ERRORS.invalid_request, { code: -32602, status: 400, reason: 'INVALID_PARAMS' })
  const standard = new Set<number>([-32600, -32601, -32602, -32603, -32700])
  for (const { code, status, reason } of Object.values(WIRE_ERRORS)) {
    assert.ok(standard.has(code) || (code <= -32000 && code >= -32099), reason)
    assert.ok(status >= 400 && status < 600)
    assert.match(reason, /^[A-Z][A-Z_]*$/)
  }
  const codes = Object.values(JSON_RPC_CODES)
  assert.equal(new Set(codes).size, codes.length)
})

test('an error has its reason and only its public details', () => {
  const details = { path: 'params.message', retryAfterMs: 5000, stderr: 'key=secret' }
  const error = toJsonRpcError(new MoleculeError('queue_full', 'The queue is full', { details }))
  assert.deepEqual(error, {
    code: JSON_RPC_CODES.queueFull,
    message: 'The queue is full',
    data: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'QUEUE_FULL',
        domain: 'a2a-protocol.org',
        metadata: { path: 'params.message', retryAfterMs: '5000' },
      },
    ],
  })
  assert.deepEqual(jsonRpcFailure(undefined, error), { jsonrpc: '2.0', id: null, error })
  assert.deepEqual(jsonRpcSuccess(7, {}), { jsonrpc: '2.0', id: 7, result: {} })
})

test('a method name gives its version and its 1.0 name', () => {
  assert.deepEqual(methodOf('message/send'), { version: '0.3', name1_0: 'SendMessage' })
  assert.deepEqual(methodOf('SendMessage'), { version: '1.0', name1_0: 'SendMessage' })
  assert.deepEqual(methodOf('tasks/resubscribe'), { version: '0.3', name1_0: 'SubscribeToTask' })
  assert.deepEqual(methodOf('ListTasks'), { version: '1.0', name1_0: 'ListTasks' })
  for (const unknown of ['tasks/list', 'constructor', '']) assert.equal(methodOf(unknown), undefined)
})
