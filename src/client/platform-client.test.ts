import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { readImports } from '../../scripts/read-imports.ts'
import { serve } from '../../test/harness/loopback-server.ts'
import type { Message } from '../protocol/a2a.ts'
import { createPlatformClient, type EventsView, type PlatformClientOptions } from './platform-client.ts'
import { readReadiness } from './readiness.ts'
import { listWorkspaces } from './workspaces.ts'

test('the token is sent as a bearer token, and not after a redirect', async (t) => {
  const seen: (string | undefined)[] = []
  const { url: elsewhere } = await serve(t, (request, response) => {
    seen.push(request.headers.authorization)
    response.end('{"workspaces":[]}')
  })
  const { url } = await serve(t, (_request, response) => response.writeHead(307, { Location: elsewhere }).end())
  const direct = createPlatformClient({ url: `${elsewhere}/`, token: 'secret' })
  assert.deepEqual(await listWorkspaces(direct), [])
  await assert.rejects(listWorkspaces(createPlatformClient({ url, token: 'secret' })), { code: 'timeout' })
  assert.deepEqual(seen, ['Bearer secret'])
})

test('PL-23 a list is read page by page, with the cursor of each page, also behind another parameter', async (t) => {
  const asked: (string | undefined)[] = []
  const { url } = await serve(t, (request, response) => {
    asked.push(request.url)
    const page = asked.length % 2 === 1 ? { next: 'a&b' } : {}
    response.end(JSON.stringify({ workspaces: [{ id: `w${asked.length}` }], pending: [], ...page }))
  })
  const client = createPlatformClient({ url, token: 'x' })
  assert.deepEqual(
    (await listWorkspaces(client)).map(({ id }) => id),
    ['w1', 'w2'],
  )
  await client.all('GET /pending', 'pending', { workspace_id: 'w' })
  const cursor = 'after=a%26b'
  assert.deepEqual(asked, [
    ...['/workspaces?limit=1000', `/workspaces?limit=1000&${cursor}`],
    ...['/pending?workspace_id=w', `/pending?workspace_id=w&${cursor}`],
  ])
})

test('an error of the platform keeps its code, hint, retry time and request id', async (t) => {
  let seconds = '3'
  const { url } = await serve(t, (_request, response) => {
    response.writeHead(429, { 'Retry-After': seconds, 'X-Request-Id': 'req_1' })
    response.end('{"error":{"code":"queue_full","message":"full","hint":"wait","id":"req_1"}}')
  })
  await assert.rejects(createPlatformClient({ url, token: undefined }).call('GET /workspaces/{id}', { id: 'ws_x' }), {
    code: 'queue_full',
    message: 'full: wait',
    retryable: true,
    details: { status: 429, requestId: 'req_1', retryAfterMs: 3000 },
  })
  for (const [given, details] of [
    ['0', { retryAfterMs: 0 }],
    ['Wed, 21 Oct 2026 07:28:00 GMT', {}],
    ['-1', {}],
  ] as const) {
    seconds = given
    await assert.rejects(createPlatformClient({ url, token: undefined }).call('GET /workspaces/{id}', { id: 'ws_x' }), {
      details: { status: 429, requestId: 'req_1', ...details },
    })
  }
})

test('a JSON-RPC error gets the error code that the platform had', async (t) => {
  const error = { code: -32001, message: 'there is no task t', data: [{ reason: 'TASK_NOT_FOUND' }] }
  const { url } = await serve(t, (_request, response) => response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error })))
  const client = createPlatformClient({ url, token: 'x' })
  await assert.rejects(client.getTask('ws_x', 't'), { code: 'not_found', retryable: false })
})

test('PL-5 a JSON-RPC error with status 200 says what the status would have said: the code, and if a retry helps', async (t) => {
  const table: readonly [reason: string, metadata: object, expected: object][] = [
    ['WORKSPACE_NOT_FOUND', {}, { code: 'not_found', retryable: false }],
    ['INVALID_REQUEST', {}, { code: 'invalid_request', retryable: false }],
    ['METHOD_NOT_FOUND', {}, { code: 'unsupported_operation', retryable: false }],
    ['IDEMPOTENCY_CONFLICT', {}, { code: 'idempotency_conflict', retryable: false }],
    ['TIMEOUT', { retryAfterMs: '2000' }, { code: 'timeout', retryable: true, details: { retryAfterMs: 2000 } }],
    ['INTERNAL', {}, { code: 'internal', retryable: false }],
  ]
  let row = table[0]
  const { url } = await serve(t, (_request, response) => {
    const error = { code: -32602, message: 'no', data: [{ reason: row?.[0], metadata: row?.[1] }] }
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))
  })
  for (row of table) await assert.rejects(createPlatformClient({ url, token: 'x' }).getTask('ws_x', 't'), row[2])
})

test('the status decides about an answer that is not from the platform', async (t) => {
  const { url } = await serve(t, (_request, response) => response.writeHead(502).end('<html>bad gateway</html>'))
  const client = createPlatformClient({ url, token: 'x' })
  await assert.rejects(listWorkspaces(client), { retryable: true, message: /HTTP 502/ })
})

test('a timeout, a body that ends early and an abort are errors, and none hangs', async (t) => {
  const { url: silent } = await serve(t, () => undefined)
  const slow = createPlatformClient({ url: silent, token: 'x', timeoutMs: 50 })
  await assert.rejects(listWorkspaces(slow), { code: 'timeout', retryable: true, message: /did not answer in time/ })
  const { url: cut } = await serve(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('{', () => response.destroy())
  })
  await assert.rejects(listWorkspaces(createPlatformClient({ url: cut, token: 'x' })), { retryable: true })
  const controller = new AbortController()
  const waiting = listWorkspaces(createPlatformClient({ url: silent, token: 'x' }), controller.signal)
  controller.abort()
  await assert.rejects(waiting)
})

test('the client runs in a browser: it imports nothing of Node, and no schemas', () => {
  const seen = new Set<string>()
  const walk = (url: URL): void => {
    if (seen.has(url.href)) return
    seen.add(url.href)
    const source = stripTypeScriptTypes(readFileSync(url, 'utf8'))
    for (const { specifier = '' } of readImports(url.pathname, source)) {
      if (specifier.startsWith('.')) walk(new URL(specifier, url))
      else assert.equal(specifier, 'eventsource-parser', url.pathname)
    }
  }
  walk(new URL('./platform-client.ts', import.meta.url))
  assert.ok(seen.size > 5)
})

interface Asked {
  readonly url: string
  readonly init: RequestInit
  readonly headers: Record<string, string>
}

type Answering = (asked: Asked) => Response | Promise<Response>

function setUp(answer: Answering, more: Partial<PlatformClientOptions> = {}) {
  const asked: Asked[] = []
  const send: typeof fetch = async (url, init = {}) => {
    const request = { url: String(url), init, headers: init.headers as Record<string, string> }
    asked.push(request)
    assert.ok(asked.length < 10, 'it does not end')
    return answer(request)
  }
  const client = createPlatformClient({ url: 'http://p.test//', token: 'secret', fetch: send, ...more })
  return { client, asked, bodies: () => asked.map(({ init }) => JSON.parse(String(init.body))) }
}

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status })
const refusal = (code: string, status: number) => json({ error: { code, message: 'no' } }, status)
const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
const never = () => new AbortController().signal
const JSON_HEADERS = { 'Content-Type': 'application/json', 'A2A-Version': '1.0' }

test('a call sends the token of the moment to the platform alone, and waits 150 s', async (t) => {
  const limits: number[] = []
  t.mock.method(AbortSignal, 'timeout', (limitMs: number) => {
    limits.push(limitMs)
    return new AbortController().signal
  })
  let tokens = 0
  for (const [token, Authorization] of [
    ['fixed', 'Bearer fixed'],
    [() => `number ${++tokens}`, 'Bearer number 1'],
    [async () => `number ${++tokens}`, 'Bearer number 2'],
    [undefined, undefined],
    [async () => undefined, undefined],
  ] as const) {
    const { client, asked } = setUp(() => json({}), { token })
    await client.call('GET /version')
    assert.deepEqual(asked[0]?.headers, { ...JSON_HEADERS, ...(Authorization && { Authorization }) })
    assert.deepEqual([asked[0]?.url, asked[0]?.init.redirect], ['http://p.test/version', 'error'])
  }
  assert.deepEqual(limits, [150_000, 150_000, 150_000, 150_000, 150_000])
})

test('readiness is asked for without a token; 503 is an answer with its reason, and other failures are errors', async () => {
  const token = () => assert.fail('no token is needed')
  const ready = setUp(() => json({}), { token })
  assert.deepEqual(await readReadiness(ready.client), { ready: true })
  assert.deepEqual([ready.asked[0]?.url, ready.asked[0]?.headers], ['http://p.test/ready', JSON_HEADERS])
  const waiting = setUp(() => json({ reason: 'it starts' }, 503))
  assert.deepEqual(await readReadiness(waiting.client), { ready: false, reason: 'it starts' })
  await assert.rejects(readReadiness(setUp(() => refusal('internal', 500)).client), { code: 'internal' })
  await assert.rejects(readReadiness(setUp(() => Promise.reject(new Error('down'))).client), { code: 'timeout' })
})

test('PL-5 a method of A2A is one JSON-RPC call, and an answer without a result is an error', async () => {
  const task = { id: 't' }
  const { client, asked, bodies } = setUp(({ init }) =>
    json({ result: String(init.body).includes('SendMessage') ? { task } : task }),
  )
  assert.deepEqual(await client.sendMessage('w/1', message, { wait: true }), task)
  assert.deepEqual(await client.sendMessage('w/1', message, { wait: false }), task)
  assert.deepEqual(await client.getTask('w', 't'), task)
  assert.deepEqual(await client.getTask('w', 't', { historyLength: 0 }), task)
  assert.deepEqual(await client.cancelTask('w', 't'), task)
  const rpc = { jsonrpc: '2.0', id: 1 }
  assert.deepEqual(bodies(), [
    { ...rpc, method: 'SendMessage', params: { message, configuration: { returnImmediately: false } } },
    { ...rpc, method: 'SendMessage', params: { message, configuration: { returnImmediately: true } } },
    { ...rpc, method: 'GetTask', params: { id: 't' } },
    { ...rpc, method: 'GetTask', params: { id: 't', historyLength: 0 } },
    { ...rpc, method: 'CancelTask', params: { id: 't' } },
  ])
  assert.deepEqual([asked[0]?.init.method, asked[0]?.url], ['POST', 'http://p.test/workspaces/w%2F1/a2a'])
  const empty = { code: 'internal', message: 'the platform sent an empty answer' }
  for (const body of ['', '{}', 'null'])
    await assert.rejects(setUp(() => new Response(body)).client.getTask('w', 't'), empty, body)
  await assert.rejects(setUp(() => json({ result: task, error: { message: 'no' } })).client.getTask('w', 't'), {
    message: 'no',
  })
  await assert.rejects(setUp(() => json({ result: { message } })).client.sendMessage('w', message, { wait: true }), {
    code: 'internal',
    message: 'the platform answered without a task',
  })
})

test('PL-23 tasks are read page by page up to the limit, or the first page alone', async () => {
  const pages = () => {
    const answers = [
      { tasks: [{ id: 'a' }, { id: 'b' }], nextPageToken: 'two' },
      { tasks: [{ id: 'c' }], nextPageToken: 'three' },
      { tasks: [{ id: 'd' }], nextPageToken: '' },
    ]
    return setUp(() => json({ result: answers.shift() ?? assert.fail('it reads on') }))
  }
  const list = async (query: { limit: number; onePage?: boolean; contextId?: string }) => {
    const { client, bodies } = pages()
    const ids = (await client.listTasks('w', query)).map(({ id }) => id).join('')
    return [ids, ...bodies().map(({ method, params }) => [method, params])]
  }
  const first = ['ListTasks', { pageSize: 3 }]
  const second = ['ListTasks', { pageSize: 1, pageToken: 'two' }]
  assert.deepEqual(await list({ limit: 3 }), ['abc', first, second])
  assert.deepEqual(await list({ limit: 3, onePage: true }), ['ab', first])
  assert.deepEqual(await list({ limit: 9, contextId: 'x' }), [
    ...['abcd', ['ListTasks', { contextId: 'x', pageSize: 9 }]],
    ['ListTasks', { contextId: 'x', pageSize: 7, pageToken: 'two' }],
    ['ListTasks', { contextId: 'x', pageSize: 6, pageToken: 'three' }],
  ])
})

test('a missing answer is retryable and names the platform, and an abort of the caller ends the call', async () => {
  const cause = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  await assert.rejects(setUp(() => Promise.reject(cause)).client.call('GET /version'), {
    code: 'timeout',
    retryable: true,
    details: { url: 'http://p.test' },
    message: 'the platform at http://p.test cannot be reached (ECONNREFUSED); start it there with "molecule up"',
  })
  await assert.rejects(setUp(() => new Response('<html>')).client.call('GET /version'), {
    code: 'timeout',
    retryable: true,
  })
  const stop = new AbortController()
  const { client } = setUp(({ init }) => {
    stop.abort()
    init.signal?.throwIfAborted()
    return json({ workspaces: [] })
  })
  await assert.rejects(listWorkspaces(client, stop.signal), { code: 'timeout' })
})

/** A stream of events that the test writes and ends; it fails when the request is aborted. */
function eventStream() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const answer: Answering = ({ init }) => {
    init.signal?.addEventListener('abort', () => void writer.abort(init.signal?.reason).catch(() => undefined))
    return new Response(readable)
  }
  const write = (text: string) => void writer.write(Buffer.from(text)).catch(() => undefined)
  return { answer, write, end: () => void writer.close().catch(() => undefined) }
}

/** Reads all events and then how the stream ended. */
async function follow(events: AsyncIterable<EventsView>) {
  const seen: unknown[] = []
  try {
    for await (const event of events) seen.push(event)
  } catch (thrown) {
    seen.push((thrown as Error).message)
  }
  return seen
}

test('events are read from the given number on; a stream that ends, or is refused, is an error', async () => {
  const stream = eventStream()
  const { client, asked } = setUp(stream.answer)
  const reading = follow(client.events('w/1', 0, never()))
  stream.write('data: {"seq":1,"events":[]}\n\ndata: {"seq":2,"events":[]}\n\n')
  stream.end()
  const lost = 'the platform at http://p.test cannot be reached (the stream ended); start it there with "molecule up"'
  assert.deepEqual(await reading, [{ seq: 1, events: [] }, { seq: 2, events: [] }, lost])
  assert.deepEqual([asked[0]?.url, asked[0]?.init.redirect], ['http://p.test/workspaces/w%2F1/events', 'error'])
  assert.deepEqual(asked[0]?.headers, { ...JSON_HEADERS, Authorization: 'Bearer secret', 'Last-Event-ID': '0' })
  assert.equal(asked[0]?.init.signal?.aborted, true, 'the request is over')
  const refused = setUp(() => refusal('forbidden', 403))
  const events = refused.client.events('w', undefined, never())
  await assert.rejects(events[Symbol.asyncIterator]().next(), { code: 'forbidden' })
  assert.deepEqual(refused.asked[0]?.headers, { ...JSON_HEADERS, Authorization: 'Bearer secret' })
  assert.deepEqual(await follow(setUp(() => Promise.reject(new Error('x'))).client.events('w', 1, never())), [
    'the platform at http://p.test cannot be reached (x); start it there with "molecule up"',
  ])
})

const timersOf = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test('the abort of the reader ends the stream of events without an error and without a timer', async () => {
  const before = timersOf()
  for (const ends of ['abort', 'abort and end']) {
    const stream = eventStream()
    const stop = new AbortController()
    const seen: unknown[] = []
    stream.write('data: {"seq":1,"events":[]}\n\n')
    const answer: Answering = ends === 'abort' ? stream.answer : async () => new Response('data: {"seq":1}\n\n')
    for await (const event of setUp(answer).client.events('w', 1, stop.signal)) {
      seen.push(event.seq)
      stop.abort()
    }
    assert.deepEqual(seen, [1], ends)
  }
  assert.equal(timersOf(), before)
})

test('PL-14 a platform that does not begin its stream of events within 45 s is dead', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { client, asked } = setUp(({ init }) => {
    const { promise, reject } = Promise.withResolvers<Response>()
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
    return promise
  })
  const reading = follow(client.events('w', 1, never()))
  await new Promise(setImmediate)
  t.mock.timers.tick(44_999)
  assert.equal(asked[0]?.init.signal?.aborted, false)
  t.mock.timers.tick(1)
  assert.equal(asked[0]?.init.signal?.aborted, true)
  assert.deepEqual(await reading, ['the platform at http://p.test did not answer in time'])
})

test('PL-14 a stream of events is dead when it is silent for 45 s', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const stream = eventStream()
  const { client, asked } = setUp(stream.answer)
  const events = client.events('w', 1, never())[Symbol.asyncIterator]()
  const isOverAfter = (ms: number) => {
    t.mock.timers.tick(ms)
    return asked[0]?.init.signal?.aborted
  }
  for (const seq of [1, 2]) {
    stream.write(`data: {"seq":${seq}}\n\n`)
    assert.deepEqual(await events.next(), { done: false, value: { seq } })
    assert.equal(isOverAfter(44_999), false)
  }
  assert.equal(isOverAfter(1), true)
  const late = 'the platform at http://p.test did not answer in time'
  await assert.rejects(events.next(), { code: 'timeout', retryable: true, message: late })
})
