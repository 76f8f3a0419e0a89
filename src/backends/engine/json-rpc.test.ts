import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { MoleculeError } from '../../errors.ts'
import { silentLog } from '../../log.ts'
import { createRpc, RpcError, type RpcOptions, unknownMethod } from './json-rpc.ts'

const never = new AbortController().signal

function setUp(options: Partial<RpcOptions> = {}) {
  const sent: Record<string, unknown>[] = []
  const notified: unknown[] = []
  const rpc = createRpc({
    write: async (text) => {
      sent.push(JSON.parse(text))
      return true
    },
    onNotification: (method, params) => notified.push([method, params]),
    onRequest: async (method) => {
      throw unknownMethod(method)
    },
    log: silentLog,
    ...options,
  })
  const send = (message: object) => rpc.receive(JSON.stringify({ jsonrpc: '2.0', ...message }))
  return { rpc, sent, notified, send }
}

test('each request gets its own answer, in any order of the answers', async () => {
  const { rpc, sent, send } = setUp()
  const one = rpc.request('one', { a: 1 }, never)
  const two = rpc.request('two', {}, never)
  assert.deepEqual(sent[0], { jsonrpc: '2.0', id: 1, method: 'one', params: { a: 1 } })
  send({ id: 2, result: 'second' })
  send({ id: 1, result: 'first' })
  send({ id: 7, result: 'not requested' })
  assert.deepEqual([await one, await two], ['first', 'second'])
})

test('an error answer is thrown unchanged', async () => {
  const { rpc, send } = setUp()
  const asked = rpc.request('one', {}, never)
  send({ id: 1, error: { code: 429, message: 'slow down', data: { a: 1 } } })
  await assert.rejects(
    asked,
    (error) => error instanceof RpcError && error.code === 429 && error.message === 'slow down',
  )
})

test('a request is cancelled by its signal, and a late answer changes nothing', async () => {
  const { rpc, send } = setUp()
  const cancel = new AbortController()
  const asked = rpc.request('one', {}, cancel.signal)
  cancel.abort()
  await assert.rejects(asked, { code: 'canceled' })
  send({ id: 1, result: 'late' })
  await assert.rejects(rpc.request('two', {}, AbortSignal.abort()), { code: 'canceled' })
})

test('when the process ends, open and later requests fail with the reason', async () => {
  const { rpc } = setUp()
  const asked = rpc.request('one', {}, never)
  const death = new MoleculeError('exit', 'it died', { retryable: true })
  rpc.end(death)
  await assert.rejects(asked, death)
  await assert.rejects(rpc.request('two', {}, never), death)
})

test('a request of the agent gets its result, and an unknown method an error', async () => {
  const { notified, sent, send } = setUp({
    onRequest: async (method, params) => {
      if (method !== 'permission') throw unknownMethod(method)
      return { allowed: params }
    },
  })
  send({ method: 'update', params: [1] })
  send({ id: 'x', method: 'permission', params: 'rm' })
  send({ id: 0, method: 'other' })
  await tick()
  assert.deepEqual(notified, [['update', [1]]])
  assert.deepEqual(sent, [
    { jsonrpc: '2.0', id: 'x', result: { allowed: 'rm' } },
    { jsonrpc: '2.0', id: 0, error: { code: -32601, message: 'method not found: other' } },
  ])
})

test('open requests are limited in both directions', async () => {
  const { rpc, send, sent } = setUp({ onRequest: () => new Promise(() => undefined) })
  const asked = Array.from({ length: 256 }, () => rpc.request('one', {}, never))
  await assert.rejects(rpc.request('one too many', {}, never), /256 requests already wait/)
  for (let id = 1; id <= 256; id += 1) send({ id, result: id })
  assert.equal((await Promise.all(asked)).length, 256)
  for (let id = 1000; id < 1257; id += 1) send({ id, method: 'permission' })
  await tick()
  assert.deepEqual(sent.at(-1)?.['error'], { code: -32603, message: 'too many requests at once' })
})

test('lines that are not messages are ignored, and codex leaves the version out', async () => {
  const { rpc, sent, notified } = setUp({ omitVersion: true })
  for (const line of ['', 'Welcome!', '[]', '"x"', '{', 'null']) rpc.receive(line)
  rpc.receive('{"method":"hello"}')
  void rpc.notify('initialized', {})
  assert.deepEqual(notified, [['hello', undefined]])
  assert.deepEqual(sent, [{ method: 'initialized', params: {} }])
})

test('a process that no longer reads fails the request', async () => {
  const { rpc } = setUp({ write: async () => false })
  await assert.rejects(rpc.request('one', {}, never), { code: 'exit', retryable: true })
})
