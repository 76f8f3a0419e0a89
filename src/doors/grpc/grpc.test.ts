import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import test, { type TestContext } from 'node:test'
import {
  CancelTaskRequest,
  GetTaskRequest,
  type JsonInput,
  ListTasksRequest,
  Role,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskPushNotificationConfig,
  TaskState,
} from '@a2a-js/sdk'
import { decodeErrorInfo, decodeStatus, GRPC_STATUS_DETAILS_BIN } from '@a2a-js/sdk/errors/grpc'
import { type ServiceError, status } from '@grpc/grpc-js'
import { secretOf, WORKSPACE_ID as tenant } from '../../../test/fakes/platform/fake-platform.ts'
import { startProxy } from '../../../test/fakes/tcp-proxy.ts'
import { createGrpcClient } from '../../../test/harness/clients/grpc-client.ts'
import { openDoor, sendParams } from '../../../test/harness/open-door.ts'
import { waitUntil, within } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { createMetrics } from '../../metrics.ts'
import type { TokenRole } from '../../workspaces/tokens.ts'
import type { HttpDoorOptions } from '../http/http.ts'
import { createGrpcDoor } from './grpc.ts'

async function openGrpc(t: TestContext, options: Partial<HttpDoorOptions> = {}) {
  const opened = await openDoor(t, { grpcPort: () => door.port, ...options })
  const metrics = createMetrics()
  const parts = { httpDoor: opened.door, host: '127.0.0.1', metrics, clock: systemClock }
  const door = createGrpcDoor({ ...parts, port: 0 })
  await door.start()
  t.after(() => door.close())
  const port = door.port ?? 0
  const clientOf = (token: string | undefined) => {
    const client = createGrpcClient(port, token)
    t.after(() => client.close())
    return client
  }
  const as = (role: TokenRole) => clientOf(secretOf(role))
  return { ...opened, grpcDoor: door, port, parts, metrics, as, clientOf, client: as('admin') }
}

const toSend = (text: string, more: Parameters<typeof sendParams>[1] = {}) =>
  SendMessageRequest.fromJSON({ tenant, ...sendParams(text, more) } as JsonInput)
const toGet = (id: string) => GetTaskRequest.fromJSON({ tenant, id })
const toSubscribe = (id: string) => SubscribeToTaskRequest.fromJSON({ tenant, id })
const returnImmediately = { configuration: { returnImmediately: true } }

/** The status of a call that fails, and the `ErrorInfo` in its details. */
async function refusalOf(call: Promise<unknown>) {
  const error: ServiceError = await call.then(
    () => assert.fail('the call succeeded'),
    (thrown) => thrown,
  )
  return { ...infoOf(error), code: status[error.code], message: error.details, metadata: error.metadata }
}

function infoOf(error: ServiceError | undefined) {
  const [bytes] = error?.metadata.get(GRPC_STATUS_DETAILS_BIN) ?? []
  assert.ok(Buffer.isBuffer(bytes), 'the status has details')
  const { code, message, details } = decodeStatus(bytes)
  assert.deepEqual([code, message], [error?.code, error?.details])
  assert.equal(details[0]?.typeUrl, 'type.googleapis.com/google.rpc.ErrorInfo')
  return decodeErrorInfo(Buffer.from(details[0]?.value ?? []))
}

test('PL-5 a gRPC client sends, gets, lists and cancels', async (t) => {
  const { client } = await openGrpc(t)
  const { payload } = await client.call('sendMessage', toSend('hello'))
  assert.equal(payload.$case, 'task')
  assert.equal(payload.value.status.state, TaskState.TASK_STATE_COMPLETED)
  assert.deepEqual(payload.value.artifacts[0].parts[0].content, { $case: 'text', value: 'hello' })
  assert.match(String(client.head()?.get('x-request-id')[0]), /^req_/)
  const got = await client.call('getTask', toGet(payload.value.id))
  assert.equal(got.id, payload.value.id)
  assert.equal(got.history[0].role, Role.ROLE_USER)
  const slow = await client.call('sendMessage', toSend('slow', returnImmediately))
  const { id } = slow.payload.value
  const listed = await client.call('listTasks', ListTasksRequest.fromJSON({ tenant }))
  assert.ok(listed.tasks.some((task: { id: string }) => task.id === id))
  const canceled = await client.call('cancelTask', CancelTaskRequest.fromJSON({ tenant, id }))
  assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED)
})

test('PL-5 a gRPC stream begins with the task and ends with it; a subscription sees the same events', async (t) => {
  const { client, fakePlatform } = await openGrpc(t)
  const sent = client.stream('sendStreamingMessage', toSend('slow'))
  await sent.arrived(1)
  const subscribed = client.stream('subscribeToTask', toSubscribe('task-1'))
  await subscribed.arrived(1)
  fakePlatform.finish('task-1')
  assert.equal(await sent.ended, undefined)
  assert.equal(await subscribed.ended, undefined)
  assert.deepEqual([sent.kinds[0], sent.kinds.at(-1)], ['task', 'statusUpdate'])
  assert.deepEqual(subscribed.events, sent.events)
  const late = client.stream('subscribeToTask', toSubscribe('task-1'))
  assert.equal(infoOf(await late.ended).reason, 'UNSUPPORTED_OPERATION')
})

test('PL-5 the extended card and the public card name the gRPC address and the tenant', async (t) => {
  const { client, port, sendRequest } = await openGrpc(t)
  const card = await client.call('getExtendedAgentCard', { tenant })
  const listed = card.supportedInterfaces.find((each: { protocolBinding: string }) => each.protocolBinding === 'GRPC')
  const expected = { url: `127.0.0.1:${port}`, protocolBinding: 'GRPC', protocolVersion: '1.0', tenant }
  assert.deepEqual({ ...listed }, expected)
  const { json } = await sendRequest(`/workspaces/${tenant}/a2a/.well-known/agent-card.json`)
  assert.deepEqual(json.supportedInterfaces[2], expected)
  assert.equal(card.supportedInterfaces[0].url, json.url)
})

test('PL-12 gRPC calls need a token, and a role and a reach that allow them', async (t) => {
  const { clientOf, as, metrics } = await openGrpc(t)
  for (const token of [undefined, 'wrong']) {
    const refused = await refusalOf(clientOf(token).call('getTask', toGet('task-1')))
    assert.deepEqual([refused.code, refused.reason], ['UNAUTHENTICATED', 'UNAUTHENTICATED'])
    assert.match(String(refused.metadata.get('www-authenticate')[0]), /^Bearer/)
  }
  const viewer = await refusalOf(as('viewer').call('sendMessage', toSend('hello')))
  assert.deepEqual([viewer.code, viewer.reason], ['PERMISSION_DENIED', 'FORBIDDEN'])
  const elsewhere = { ...toSend('hello'), tenant: 'ws_01M7FPH65GBDK8DY0646KAE618' }
  assert.equal((await refusalOf(as('caller').call('sendMessage', elsewhere))).code, 'PERMISSION_DENIED')
  const counted = metrics.read().get('molecule_grpc_requests_total')
  assert.deepEqual(
    counted?.map(({ labels, value }) => [labels['status'], value]),
    [
      ['UNAUTHENTICATED', 2],
      ['PERMISSION_DENIED', 2],
    ],
  )
})

test('PL-5 gRPC errors have a google.rpc.Status with an ErrorInfo', async (t) => {
  const { client } = await openGrpc(t)
  const unknown = await refusalOf(client.call('getTask', toGet('nope')))
  assert.deepEqual([unknown.code, unknown.reason, unknown.domain], ['NOT_FOUND', 'TASK_NOT_FOUND', 'a2a-protocol.org'])
  assert.deepEqual(unknown.metadata.get('x-request-id').length, 1)
  const nowhere = await refusalOf(client.call('getTask', { ...toGet('nope'), tenant: 'ws_nobody' }))
  assert.deepEqual([nowhere.code, nowhere.reason], ['NOT_FOUND', 'WORKSPACE_NOT_FOUND'])
  const noTenant = await refusalOf(client.call('getTask', { ...toGet('nope'), tenant: '' }))
  assert.deepEqual([noTenant.code, noTenant.reason], ['INVALID_ARGUMENT', 'INVALID_PARAMS'])
  assert.match(noTenant.message, /tenant must be the id or the name of a workspace/)
  const empty = await refusalOf(client.call('sendMessage', { ...toSend('x'), message: undefined }))
  assert.deepEqual([empty.code, empty.reason], ['INVALID_ARGUMENT', 'INVALID_PARAMS'])
  const full = await refusalOf(client.call('sendMessage', toSend('queue_full')))
  assert.deepEqual([full.code, full.reason], ['RESOURCE_EXHAUSTED', 'QUEUE_FULL'])
  assert.equal(full.metadata.get('retry-after')[0], '2')
  const old = await refusalOf(client.call('getTask', toGet('nope'), { 'a2a-version': '0.3' }))
  assert.deepEqual([old.code, old.reason], ['FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'])
  const ended = await client.call('sendMessage', toSend('hello'))
  const cancel = CancelTaskRequest.fromJSON({ tenant, id: ended.payload.value.id })
  assert.equal((await refusalOf(client.call('cancelTask', cancel))).code, 'FAILED_PRECONDITION')
})

test('a gRPC defect shows its id and nothing internal; the log has the whole error', async (t) => {
  const { client, fakePlatform } = await openGrpc(t)
  const refused = await refusalOf(client.call('sendMessage', toSend('defect')))
  const requestId = String(refused.metadata.get('x-request-id')[0])
  assert.equal(refused.code, 'INTERNAL')
  assert.doesNotMatch(refused.message, /inside/)
  assert.ok(refused.message.includes(requestId))
  const line = fakePlatform.logged.find((entry) => entry['requestId'] === requestId)
  assert.match(JSON.stringify(line), /inside/)
  assert.match(JSON.stringify(line), /A2AService\/SendMessage/)
})

test('BK-1 a gRPC message is admitted as the JSON-RPC request that means the same', async (t) => {
  const { client, fakePlatform } = await openGrpc(t)
  const parts = [{ text: 'hi' }, { raw: 'AQI=', mediaType: 'image/png' }, { data: { n: [1, true, null] } }]
  const request = toSend('hi', { message: { parts, metadata: { a: { b: 1 } } } })
  await client.call('sendMessage', request, { 'idempotency-key': 'once' })
  const [letter] = fakePlatform.letters
  assert.equal(letter?.idempotencyKey, 'once')
  assert.equal(letter?.envelope.version, '1.0')
  assert.ok(letter)
  const { params } = letter.envelope.raw as { params: { message: { parts: unknown; metadata: unknown } } }
  assert.deepEqual([params.message.parts, params.message.metadata], [parts, { a: { b: 1 } }])
})

test('PL-19 the key of webhook signatures comes in the metadata', async (t) => {
  const { client } = await openGrpc(t)
  const slow = await client.call('sendMessage', toSend('slow', returnImmediately))
  const config = { tenant, taskId: slow.payload.value.id, url: 'https://hooks.test/a', id: 'one' }
  await client.call('createTaskPushNotificationConfig', TaskPushNotificationConfig.fromJSON(config))
  assert.match(String(client.head()?.get('x-molecule-webhook-secret')[0]), /^mol_webhook_/)
  const listed = await client.call('listTaskPushNotificationConfigs', { ...config, pageSize: 0, pageToken: '' })
  assert.deepEqual([listed.configs.length, listed.configs[0].id], [1, 'hook'])
  assert.deepEqual(await client.call('deleteTaskPushNotificationConfig', config), {})
})

test('PL-9 gRPC and HTTP share the limit of requests of a token', async (t) => {
  const { as, sendRequest } = await openGrpc(t)
  const client = as('member')
  const calls = Array.from({ length: 599 }, () => client.call('getTask', toGet('nope')).catch(() => undefined))
  await Promise.all(calls)
  const token = secretOf('member')
  assert.notEqual((await sendRequest('/workspaces', { token })).status, 429)
  const refused = await refusalOf(client.call('getTask', toGet('nope')))
  assert.deepEqual([refused.code, refused.reason], ['RESOURCE_EXHAUSTED', 'TOO_MANY_REQUESTS'])
  assert.ok(Number(refused.metadata.get('retry-after')[0]) > 0)
})

test('PL-9 a token may open 256 gRPC streams; a cancelled one makes room', async (t) => {
  const { as, fakePlatform } = await openGrpc(t)
  const client = as('member')
  await client.call('sendMessage', toSend('slow', returnImmediately))
  const streams = Array.from({ length: 256 }, () => client.stream('subscribeToTask', toSubscribe('task-1')))
  await Promise.all(streams.map((stream) => stream.arrived(1)))
  const refused = client.stream('subscribeToTask', toSubscribe('task-1'))
  assert.equal(infoOf(await refused.ended).reason, 'TOO_MANY_REQUESTS')
  streams[0]?.readable.cancel()
  await waitUntil(() => fakePlatform.following() === 255, 'the cancelled stream is gone')
  const next = client.stream('subscribeToTask', toSubscribe('task-1'))
  await next.arrived(1)
  fakePlatform.finish('task-1')
  assert.equal(await next.ended, undefined)
})

test('PL-9 a gRPC message over 8 MiB, over 10,000 values or nested too deep is refused', async (t) => {
  const { client } = await openGrpc(t)
  const withData = (data: unknown) => toSend('x', { message: { parts: [{ data }] } })
  const large = toSend('x'.repeat(8 * 1024 * 1024))
  await assert.rejects(client.call('sendMessage', large), { code: status.RESOURCE_EXHAUSTED })
  const many = await refusalOf(client.call('sendMessage', withData(Array.from({ length: 30_000 }, () => 1))))
  assert.deepEqual([many.code, many.reason], ['INVALID_ARGUMENT', 'INVALID_PARAMS'])
  assert.match(many.message, /more than 10000 values/)
  let deep: unknown = 1
  for (let level = 0; level < 200; level++) deep = [deep]
  const nested = await refusalOf(client.call('sendMessage', withData(deep)))
  assert.deepEqual([nested.code, nested.reason], ['INVALID_ARGUMENT', 'INVALID_PARAMS'])
  assert.match(nested.message, /nested deeper/)
  const fits = await client.call(
    'sendMessage',
    withData(Object.fromEntries(Array.from({ length: 9000 }, (_, n) => [n, n]))),
  )
  assert.equal(fits.payload.$case, 'task')
})

test('a gRPC client that cancels, or whose connection breaks, ends its wait and its stream; the task goes on', async (t) => {
  const { client, fakePlatform, port } = await openGrpc(t)
  const proxy = await startProxy(`http://127.0.0.1:${port}`)
  t.after(() => proxy.close())
  const broken = createGrpcClient(Number(new URL(proxy.url).port), secretOf('member'))
  t.after(() => broken.close())
  const sent = assert.rejects(broken.call('sendMessage', toSend('slow')), { code: status.UNAVAILABLE })
  await waitUntil(() => fakePlatform.waiting() === 1, 'the call waits')
  const stream = broken.stream('subscribeToTask', toSubscribe('task-1'))
  await stream.arrived(1)
  const cancelled = client.stream('subscribeToTask', toSubscribe('task-1'))
  await cancelled.arrived(1)
  cancelled.readable.cancel()
  assert.equal((await cancelled.ended)?.code, status.CANCELLED)
  await waitUntil(() => fakePlatform.following() === 1, 'the cancelled stream is over')
  proxy.cut()
  await sent
  await waitUntil(() => fakePlatform.following() + fakePlatform.waiting() === 0, 'stream and wait are over')
  assert.equal((await client.call('getTask', toGet('task-1'))).status.state, TaskState.TASK_STATE_WORKING)
})

test('a gRPC client that sets a deadline gets DEADLINE_EXCEEDED and its wait ends', async (t) => {
  const { client, fakePlatform } = await openGrpc(t)
  await assert.rejects(client.call('sendMessage', toSend('slow'), { 'grpc-timeout': '100m' }), {
    code: status.DEADLINE_EXCEEDED,
  })
  await waitUntil(() => fakePlatform.waiting() === 0, 'the wait is over')
})

test('a slow gRPC reader gets one event at a time, and is disconnected when it reads too slowly', async (t) => {
  const sseLimits = { keepAliveMs: 15_000, unsentBytesMax: 1024 * 1024, unsentMs: 300 }
  const { client, fakePlatform } = await openGrpc(t, { sseLimits })
  const stream = client.stream('sendStreamingMessage', toSend('slow'))
  await stream.arrived(1)
  stream.readable.pause()
  const artifact = { artifactId: 'reply', parts: [{ text: 'x'.repeat(1024 * 1024) }] }
  const update = { taskId: 'task-1', contextId: 'c', artifact, append: true, lastChunk: false }
  for (let n = 0; n < 64; n++) fakePlatform.addLogRow('task-1', [{ artifactUpdate: update }])
  await waitUntil(() => fakePlatform.following() === 0, 'the reader is disconnected')
  stream.readable.resume()
  assert.equal((await stream.ended)?.code, status.UNAVAILABLE)
  assert.ok(stream.events.length < 64)
})

test('PL-12 revoking a token ends its gRPC streams with UNAUTHENTICATED', async (t) => {
  const { as, fakePlatform } = await openGrpc(t)
  const stream = as('member').stream('sendStreamingMessage', toSend('slow'))
  await stream.arrived(1)
  await fakePlatform.tokens.revoke('member')
  assert.equal(infoOf(await stream.ended).reason, 'UNAUTHENTICATED')
})

test('a closing gRPC door answers waiting calls with the unfinished task and tells streams to come back', async (t) => {
  const { client, door, grpcDoor, fakePlatform, port } = await openGrpc(t)
  const waiting = client.call('sendMessage', toSend('slow'))
  const stream = client.stream('sendStreamingMessage', toSend('slow', { message: { messageId: 'other' } }))
  await stream.arrived(1)
  await waitUntil(() => fakePlatform.waiting() === 1, 'the call waits')
  await Promise.all([door.close(), grpcDoor.close()])
  assert.equal((await waiting).payload.value.status.state, TaskState.TASK_STATE_WORKING)
  const refused = await stream.ended
  assert.equal(refused?.code, status.UNAVAILABLE)
  assert.match(infoOf(refused).reason, /UNAVAILABLE/)
  await assert.rejects(client.call('getTask', toGet('task-1')), { code: status.UNAVAILABLE })
  assert.equal(grpcDoor.port, undefined)
  assert.equal(await isOpen(port), false)
})

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

test('PL-13 a gRPC port that is taken is refused with the flag that changes it', async (t) => {
  const { port, parts } = await openGrpc(t)
  const second = createGrpcDoor({ ...parts, port })
  await assert.rejects(second.start(), { code: 'in_use', message: /choose another with --grpc-port/ })
  await second.close()
})

test('a client that does not speak gRPC is disconnected', async (t) => {
  const { port } = await openGrpc(t)
  const socket = connect(port, '127.0.0.1')
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined).resume()
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await within(closed, 'the connection closes')
})

test('a gRPC call whose message does not arrive in time is refused', async (t) => {
  const { port } = await openGrpc(t, { requestTimeoutMs: 200 })
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const headers = {
    ':method': 'POST',
    ':path': '/lf.a2a.v1.A2AService/GetTask',
    'content-type': 'application/grpc',
    authorization: `Bearer ${secretOf('admin')}`,
  }
  const call = session.request(headers, { endStream: false })
  const [answer] = await within(once(call, 'response'), 'the refusal')
  assert.equal(answer['grpc-status'], String(status.DEADLINE_EXCEEDED))
  assert.match(decodeURI(answer['grpc-message']), /did not arrive within 0.2 s/)
  session.destroy()
})

test('PL-31 unfinished gRPC messages of a token let its next call wait, and no other caller', async (t) => {
  const { port, as, client } = await openGrpc(t)
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  t.after(() => session.destroy())
  const path = { ':method': 'POST', ':path': '/lf.a2a.v1.A2AService/GetTask', 'content-type': 'application/grpc' }
  const headers = { ...path, authorization: `Bearer ${secretOf('member')}` }
  for (let count = 0; count < 8; count++) session.request(headers, { endStream: false }).on('error', () => undefined)
  // One answered ping: the door has seen the calls before it.
  await new Promise((resolve) => session.ping(resolve))
  let isAnswered = false
  const waiting = refusalOf(as('member').call('getTask', toGet('nope'))).finally(() => {
    isAnswered = true
  })
  for (let count = 0; count < 20; count++)
    assert.equal((await refusalOf(client.call('getTask', toGet('nope')))).code, 'NOT_FOUND')
  assert.equal(isAnswered, false)
  session.destroy()
  assert.equal((await within(waiting, 'the call is read')).code, 'NOT_FOUND')
})
