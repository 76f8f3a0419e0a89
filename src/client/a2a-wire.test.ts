import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultOf } from './a2a-wire.ts'
import type { AgentInterface } from './agent-card.ts'

const to = (binding: AgentInterface['binding']): AgentInterface => ({
  url: 'https://a.test/',
  version: '1.0',
  binding,
  streaming: true,
  name: 'x',
})

const refusal = (binding: AgentInterface['binding'], error: unknown) => {
  try {
    return resultOf({ error }, to(binding))
  } catch (thrown) {
    const { code, retryable, details, message } = thrown as { [key: string]: unknown }
    return { code, retryable, details, message }
  }
}

test('AG-11 each error of JSON-RPC has its code here, and says if a retry may help', () => {
  const table: [rpcCode: number | undefined, code: string, retryable: boolean][] = [
    [-32_001, 'not_found', false],
    [-32_002, 'not_cancelable', false],
    [-32_003, 'unsupported_operation', false],
    [-32_004, 'unsupported_operation', false],
    [-32_601, 'unsupported_operation', false],
    [-32_051, 'auth_failed', false],
    [-32_053, 'rate_limited', true],
    [-32_058, 'rate_limited', true],
    [-32_603, 'agent_failed', true],
    [-32_055, 'agent_failed', true],
    [-32_602, 'agent_failed', false],
    [404, 'agent_failed', false],
    [undefined, 'agent_failed', false],
  ]
  for (const [rpcCode, code, retryable] of table) {
    const details = { rpcCode }
    const expected = { code, retryable, details, message: 'the remote agent refused: no' }
    assert.deepEqual(refusal('JSONRPC', { code: rpcCode, message: 'no' }), expected)
  }
})

test('AG-11 a reason of an agent is cut after 300 characters, and a missing one is named', () => {
  const message = (reason: unknown) => refusal('JSONRPC', { code: 1, message: reason }) as { message: string }
  assert.equal(message('x'.repeat(301)).message, `the remote agent refused: ${'x'.repeat(300)}`)
  for (const reason of [undefined, null])
    assert.equal(message(reason).message, 'the remote agent refused: no reason given')
})

test('AG-11 an error over REST is known by the first reason that we know, else by its status, else as it is', () => {
  const table: [code: unknown, details: unknown, rpcCode: unknown][] = [
    [400, [{ reason: 'OTHER' }, 7, { reason: 'TASK_NOT_FOUND' }, { reason: 'TASK_NOT_CANCELABLE' }], -32_001],
    [400, [{ reason: 'TASK_NOT_CANCELABLE' }], -32_002],
    [400, [{ reason: 'UNSUPPORTED_OPERATION' }], -32_004],
    [400, [{ reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' }], -32_003],
    [401, undefined, -32_051],
    [404, 'TASK_NOT_FOUND', -32_601],
    [405, [], -32_601],
    [429, [null], -32_053],
    [500, [], -32_603],
    [502, [], -32_603],
    [503, [{ reason: 'constructor' }], -32_055],
    [504, [], -32_603],
    [418, [], 418],
    ['UNKNOWN', [], 'UNKNOWN'],
  ]
  for (const [code, details, rpcCode] of table) {
    const found = refusal('HTTP+JSON', { code, message: 'no', details }) as { details: unknown; message: string }
    assert.deepEqual([found.details, found.message], [{ rpcCode }, 'the remote agent refused: no'], `${code}`)
  }
})

test('AG-11 the result of JSON-RPC is inside of its envelope, and over REST it is the whole answer', () => {
  const value = { result: { id: 't' }, error: null }
  assert.deepEqual(resultOf(value, to('JSONRPC')), { id: 't' })
  assert.deepEqual(resultOf(value, to('HTTP+JSON')), value)
  assert.equal(resultOf([1], to('JSONRPC')), undefined)
  assert.deepEqual(resultOf([1], to('HTTP+JSON')), [1])
})
