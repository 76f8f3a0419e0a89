import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a, soon } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams } from '../../../../test/harness/open-door.ts'
import { MoleculeError } from '../../../errors.ts'
import type { StreamResponse } from '../../../protocol/a2a.ts'
import type { JsonObject } from '../../../protocol/json.ts'
import { createA2aCalls } from './calls.ts'

/** The calls of another binding, as an admin. */
async function openCalls() {
  const { options, fakePlatform } = openA2a()
  const calls = createA2aCalls(options, 60_000)
  const identity = await calls.identify('Bearer admin-secret', '127.0.0.1')
  const response = Object.assign(new EventEmitter(), { setHeader: () => undefined })
  const call = (name: string, params: object, headers = {}) =>
    calls.call({
      name,
      params: params as JsonObject,
      workspaceId: WORKSPACE_ID,
      identity,
      bytes: 12,
      exchange: { request: { headers: { host: 'localhost', ...headers }, socket: {} }, response, requestId: 'req_01' },
    })
  return { calls, call, fakePlatform, response }
}

test('PL-5 another binding has the limits of the door and ids of the same form', async () => {
  const { calls } = await openCalls()
  assert.deepEqual(calls.limits, {
    requestBytesMax: 8_388_608,
    smallRequestBytesMax: 262_144,
    requestValuesMax: 10_000,
    requestMs: 60_000,
    keepAliveMs: 15_000,
    unsentBytesMax: 1_048_576,
    unsentMs: 30_000,
  })
  assert.match(calls.newRequestId(), /^req_[0-9A-Z]{26}$/)
  await assert.rejects(calls.identify('Bearer wrong', undefined), { code: 'unauthenticated' })
})

test('PL-5 another binding calls the methods with 1.0 or no version, and is refused with another', async () => {
  const { call, fakePlatform } = await openCalls()
  for (const headers of [{}, { 'a2a-version': '1.0' }]) {
    const result = await call('SendMessage', sendParams('hello'), headers)
    assert.ok('value' in result)
  }
  assert.deepEqual([fakePlatform.letters[0]?.id, fakePlatform.letters[0]?.bytes], ['01', 12])
  for (const version of ['0.3', '2.0']) {
    const result = await call('SendMessage', sendParams('hello'), { 'a2a-version': version })
    assert.ok('refusal' in result)
    const { status, message, info, headers } = result.refusal
    assert.deepEqual(
      [status, message, info.reason, headers],
      ['FAILED_PRECONDITION', 'the versions served here are 1.0 and 0.3', 'VERSION_NOT_SUPPORTED', {}],
    )
  }
})

test('PL-5 a stream of another binding gives each event in order, one at a time, and says whether it is complete', async () => {
  const { call, fakePlatform, response } = await openCalls()
  const follow = async (text: string, write: (event: StreamResponse) => Promise<void>) => {
    const result = await call('SendStreamingMessage', sendParams(text))
    assert.ok('follow' in result)
    return result.follow(write)
  }
  const order: string[] = []
  const whole = follow('slow', async (event) => {
    order.push(`begin ${Object.keys(event)[0]}`)
    await new Promise((resolve) => setImmediate(resolve))
    order.push('end')
  })
  await soon(() => fakePlatform.following() > 0)
  fakePlatform.finish('task-1')
  assert.equal(await whole, true)
  assert.deepEqual(order, ['begin task', 'end', 'begin artifactUpdate', 'end', 'begin statusUpdate', 'end'])
  const result = await call('SendStreamingMessage', sendParams('slow', { message: { messageId: 'second' } }))
  assert.ok('follow' in result)
  const left = result.follow(async () => undefined)
  await soon(() => fakePlatform.following() > 0)
  response.emit('close')
  assert.equal(await left, false)
})

test('PL-15 a failed call of another binding is logged, and its caller sees the status and the reason', async () => {
  const { calls, fakePlatform } = await openCalls()
  const failed = { requestId: 'req_01', workspaceId: WORKSPACE_ID, path: '/a2a/Send?x=1' }
  const full = new MoleculeError('queue_full', 'the queue is full', { details: { retryAfterMs: 1500 } })
  const { status, message, info, headers } = await calls.refuse(full, failed)
  assert.deepEqual(
    [status, message, info.reason, headers],
    ['RESOURCE_EXHAUSTED', 'the queue is full', 'QUEUE_FULL', { 'Retry-After': '2' }],
  )
  const line = fakePlatform.logged.at(-1)
  assert.deepEqual([line?.['method'], line?.['path'], line?.['requestId']], ['gRPC', '/a2a/Send', 'req_01'])
  const gone = await calls.refuse(new MoleculeError('not_found', 'no'), {
    ...failed,
    workspaceId: 'ws_00000000000000000000000000',
  })
  assert.deepEqual([gone.status, gone.info.reason], ['NOT_FOUND', 'WORKSPACE_NOT_FOUND'])
})
