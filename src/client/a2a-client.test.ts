import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { serve } from '../../test/harness/loopback-server.ts'
import { MoleculeError } from '../errors.ts'
import type { Message } from '../protocol/a2a.ts'
import { createA2aClient } from './a2a-client.ts'
import type { OutboundResponse } from './dial.ts'
import { createOutbound, type Outbound, type OutboundRequest } from './outbound.ts'

type Rpc = { method: string; params: { id?: string; message?: Message; configuration?: object } }
type Talk = (rpc: Rpc, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

/** An agent that offers JSON-RPC of that version, with scripted answers. */
async function agent(t: TestContext, version: string, talk: Talk) {
  const { url } = await serve(t, async (request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify(card(version, '/rpc')))
    await talk(JSON.parse(await text(request)) as Rpc, response, request)
  })
  return createA2aClient({ url, outbound: createOutbound(), headers: async () => ({ 'X-Key': 'k' }) })
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

const card = (version: string, url: string) => ({
  name: 'test',
  capabilities: { streaming: true },
  ...(version === '1.0'
    ? { supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
    : { url, protocolVersion: version, preferredTransport: 'JSONRPC' }),
})

const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }

test('a stream is read event by event in any chunking, and a refusal in its place or as its only event is an error', async (t) => {
  const update = (state: string) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } })
  const client = await agent(t, '1.0', async (rpc, response) => {
    if (rpc.method === 'SubscribeToTask') {
      const refusal = JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'it is over' } })
      if (!JSON.stringify(rpc).includes('as-event')) return void response.end(refusal)
      return void response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(`data: ${refusal}\n\n`)
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const events = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'].map(
      (state, id) => `id: ${id}\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: update(state) })}\n\n`,
    )
    const bytes = Buffer.from(`: grüße 漢\n\n${events.join('')}`)
    for (let at = 0; at < bytes.length; at += 7) {
      response.write(bytes.subarray(at, at + 7))
      await new Promise(setImmediate)
    }
    response.end()
  })
  const states = (await all(client.stream({ message }))).map((event) => event.statusUpdate?.status.state)
  assert.deepEqual(states, ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'])
  for (const id of ['t', 'as-event'])
    await assert.rejects(all(client.subscribe(id)), { code: 'unsupported_operation', message: /it is over/ }, id)
})

test('the refusal of an agent becomes a MoleculeError with its reason and retryable', async (t) => {
  const answers: [(response: ServerResponse) => void, string, boolean][] = [
    [(response) => response.end('{"error":{"code":-32001,"message":"no such"}}'), 'not_found', false],
    [(response) => response.writeHead(403).end('{"error":{"code":-32052,"message":"circle"}}'), 'agent_failed', false],
    [(response) => response.end('{"error":{"code":-32603,"message":"oops"}}'), 'agent_failed', true],
    [(response) => response.writeHead(401).end('who?'), 'auth_failed', false],
    [(response) => response.writeHead(429).end(), 'rate_limited', true],
    [(response) => response.writeHead(503).end('<html>'), 'agent_failed', true],
    [(response) => response.end('<html>'), 'agent_failed', false],
    [(response) => response.end('{"result":7}'), 'agent_failed', false],
    [(response) => response.destroy(), 'timeout', true],
  ]
  let next = 0
  const client = await agent(t, '1.0', (_rpc, response) => void answers[next]?.[0](response))
  for (const [, code, retryable] of answers) {
    const error = await client.get('t').catch((thrown: unknown) => thrown)
    assert.ok(error instanceof MoleculeError, String(error))
    assert.deepEqual([error.code, error.retryable], [code, retryable], error.message)
    next += 1
  }
})

/** An agent that offers only 1.0 over REST, for a tenant. */
async function restAgent(t: TestContext, talk: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = []
  const { url } = await serve(t, (request, response) => {
    if (request.url?.endsWith('agent-card.json')) {
      const offer = { url: '/rest/', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: 'a b' }
      return void response.end(JSON.stringify({ capabilities: { streaming: true }, supportedInterfaces: [offer] }))
    }
    text(request).then((body) => {
      asked.push(`${request.method} ${request.url} ${body}`)
      talk(request, response)
    }, assert.fail)
  })
  return { asked, client: createA2aClient({ url, outbound: createOutbound(), headers: async () => ({}) }) }
}

test('AG-11 over REST each method has its route below the tenant, and answers have no JSON-RPC envelope', async (t) => {
  const task = { id: 't/1', contextId: 'c1', status: { state: 'TASK_STATE_WORKING' } }
  const { asked, client } = await restAgent(t, ({ url = '', headers }, response) => {
    if (headers.accept === 'text/event-stream') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      return void response.end(`data: ${JSON.stringify({ task })}\n\n`)
    }
    response.end(JSON.stringify(url.endsWith(':send') ? { task } : task))
  })
  assert.deepEqual(await client.send({ message }), { task })
  assert.deepEqual(await all(client.stream({ message })), [{ task }])
  assert.deepEqual(await client.get('t/1'), task)
  assert.deepEqual(await all(client.subscribe('t/1')), [{ task }])
  assert.deepEqual(await client.cancel('t/1'), task)
  const body = JSON.stringify({ message, configuration: { returnImmediately: true } })
  assert.deepEqual(asked, [
    `POST /rest/a%20b/message:send ${body}`,
    `POST /rest/a%20b/message:stream ${body}`,
    'GET /rest/a%20b/tasks/t%2F1 ',
    'GET /rest/a%20b/tasks/t%2F1:subscribe ',
    'POST /rest/a%20b/tasks/t%2F1:cancel {}',
  ])
})

test('AG-11 a refusal over REST is mapped by its reason, else by its status, also inside a stream', async (t) => {
  const cases: [number, string | undefined, string, boolean][] = [
    [404, 'TASK_NOT_FOUND', 'not_found', false],
    [429, undefined, 'rate_limited', true],
    [503, 'SOMETHING_ELSE', 'agent_failed', true],
  ]
  for (const [status, reason, code, retryable] of cases) {
    const error = { code: status, status: 'X', message: 'no', details: reason === undefined ? [] : [{ reason }] }
    const { client } = await restAgent(t, ({ headers }, response) => {
      const streams = headers.accept === 'text/event-stream'
      response.writeHead(streams ? 200 : status, { 'Content-Type': streams ? 'text/event-stream' : 'application/json' })
      response.end(streams ? `event: error\ndata: ${JSON.stringify({ error })}\n\n` : JSON.stringify({ error }))
    })
    await assert.rejects(client.get('t1'), { code, retryable }, `${status} ${reason}`)
    await assert.rejects(all(client.subscribe('t1')), { code, retryable }, `${status} ${reason}`)
  }
})

test('AG-17 a host that a card or redirect names must be public, although an admin gave the URL', async (t) => {
  const { port, visits } = await serve(t, (_request, response) => response.end('{}'))
  const resolve = async () => [{ address: '127.0.0.1', family: 4 } as const]
  const cards = await serve(t, (request, response) => {
    if (request.url?.startsWith('/hop'))
      return void response.writeHead(307, { Location: `http://127.0.0.1:${port}/` }).end()
    response.end(JSON.stringify(card('1.0', request.url?.startsWith('/far') ? `http://127.0.0.1:${port}/` : '/hop')))
  })
  for (const path of ['far', 'near']) {
    const url = `http://agent.test:${cards.port}/${path}`
    const client = createA2aClient({ url, outbound: createOutbound({ resolve }), headers: async () => ({}) })
    await assert.rejects(client.send({ message }), { code: 'forbidden', message: /127\.0\.0\.1 is a loopback/ }, path)
    const outbound = createOutbound({ resolve, allow: ['127.0.0.1'] })
    await assert.rejects(createA2aClient({ url, outbound, headers: async () => ({}) }).get('t'), {
      code: 'agent_failed',
    })
  }
  assert.equal(visits.length, 2, 'only those that the owner allowed')
})

interface Answer {
  readonly status?: number
  readonly type?: string
  readonly body: unknown
}

const URL_GIVEN = 'https://a.test'
const CREDENTIALS = { 'X-Key': 'k' }
const task = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_WORKING' } }
const asTask = { body: { result: task } }

const rpcCard = (url: string, more: object = {}) => ({
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', ...more }],
})

function toResponse({ status = 200, type = 'application/json', body }: Answer): OutboundResponse {
  let unread = true
  const read = () => {
    assert.ok(unread, 'a body may be read once')
    unread = false
    return typeof body === 'string' ? body : JSON.stringify(body)
  }
  return {
    status,
    headers: { 'content-type': type },
    async *chunks() {
      yield Buffer.from(read())
    },
    text: async () => read(),
    discard: () => undefined,
  }
}

/** A client whose agent has this card and answers each call with `answer`. */
function setUpOutbound(agentCard: object, answer: () => Answer, credentials: Record<string, string> = CREDENTIALS) {
  const cards: OutboundRequest[] = []
  const calls: OutboundRequest[] = []
  const outbound: Outbound = {
    check: async () => undefined,
    async send(request) {
      const isCard = request.url.endsWith('agent-card.json')
      ;(isCard ? cards : calls).push(request)
      return toResponse(isCard ? { body: agentCard } : answer())
    },
  }
  const client = createA2aClient({ url: URL_GIVEN, outbound, headers: async () => credentials })
  return { client, cards, calls }
}

test('AG-11 the card and each call are asked for with their headers and limits; a stream has no limit in all', async () => {
  const event = { type: 'text/event-stream; charset=utf-8', body: `data: ${JSON.stringify({ result: { task } })}\n\n` }
  const answers = [asTask, event]
  const { client, cards, calls } = setUpOutbound(rpcCard('/rpc', { tenant: 'one' }), () => answers.shift() ?? asTask)
  assert.deepEqual(await client.get('t1'), task)
  const extensions = ['https://a.test/x', 'https://a.test/y']
  assert.deepEqual(
    await all(client.stream({ message: { ...message, extensions }, trace: { traceparent: '00-1-2-01' } })),
    [{ task }],
  )
  const version = { 'A2A-Version': '1.0' }
  assert.deepEqual(cards, [
    {
      url: 'https://a.test/.well-known/agent-card.json',
      trusted: true,
      totalMs: 15_000,
      headers: { ...CREDENTIALS, Accept: 'application/json', ...version },
    },
  ])
  const call = { url: 'https://a.test/rpc', method: 'POST', trusted: true, headersMs: 120_000 }
  const rpc = { jsonrpc: '2.0', id: 1 }
  const headers = { ...CREDENTIALS, 'Content-Type': 'application/json', ...version }
  const params = { message: { ...message, extensions }, configuration: { returnImmediately: true } }
  assert.deepEqual(calls, [
    {
      ...call,
      totalMs: 120_000,
      body: JSON.stringify({ ...rpc, method: 'GetTask', params: { tenant: 'one', id: 't1' } }),
      headers: { ...headers, Accept: 'application/json' },
    },
    {
      ...call,
      body: JSON.stringify({ ...rpc, method: 'SendStreamingMessage', params: { tenant: 'one', ...params } }),
      headers: {
        ...headers,
        Accept: 'text/event-stream',
        'A2A-Extensions': extensions.join(', '),
        traceparent: '00-1-2-01',
      },
    },
  ])
})

test('AG-11 an agent of 0.3 gets the methods and the header of extensions of 0.3', async () => {
  const { client, calls } = setUpOutbound({ url: '/old', protocolVersion: '0.3.0' }, () => ({
    body: { result: { kind: 'task', ...task } },
  }))
  await client.send({ message: { ...message, extensions: ['e'] } })
  await all(client.stream({ message }))
  await client.get('t1')
  await all(client.subscribe('t1'))
  await client.cancel('t1')
  assert.deepEqual(
    calls.map(({ body = '' }) => JSON.parse(body).method),
    ['message/send', 'message/stream', 'tasks/get', 'tasks/resubscribe', 'tasks/cancel'],
  )
  const old = { ...message, extensions: ['e'], kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
  assert.deepEqual(JSON.parse(calls[0]?.body ?? '').params, { message: old, configuration: { blocking: false } })
  assert.deepEqual(
    calls.map(({ headers }) => [headers?.['X-A2A-Extensions'], headers?.['A2A-Extensions'], headers?.['A2A-Version']]),
    [['e', undefined, '0.3'], ...Array.from({ length: 4 }, () => [undefined, undefined, '0.3'])],
  )
})

test('AG-11 over REST without a tenant the route is right below the URL of the interface', async () => {
  const rest = { protocolBinding: 'HTTP+JSON' }
  const { client, calls } = setUpOutbound(rpcCard('https://a.test/rest//', rest), () => ({ body: { task } }))
  await client.send({ message })
  await client.get('a/b').catch(() => undefined)
  await client.cancel('a/b').catch(() => undefined)
  assert.deepEqual(
    calls.map(({ method, url, body }) => [method, url, body]),
    [
      [
        ...['POST', 'https://a.test/rest/message:send'],
        JSON.stringify({ message, configuration: { returnImmediately: true } }),
      ],
      ['GET', 'https://a.test/rest/tasks/a%2Fb', undefined],
      ['POST', 'https://a.test/rest/tasks/a%2Fb:cancel', '{}'],
    ],
  )
})

test('AG-11 a card is used for five minutes', async (t) => {
  let nowMs = 1000
  t.mock.method(performance, 'now', () => nowMs)
  const { client, cards } = setUpOutbound(rpcCard('/rpc'), () => asTask)
  for (const [atMs, fetched] of [
    [1000, 1],
    [300_999, 1],
    [301_000, 2],
    [301_001, 2],
  ] as const) {
    nowMs = atMs
    await client.get('t1')
    assert.equal(cards.length, fetched, `${atMs}`)
  }
})

test('AG-17 only the origin that the admin gave gets credentials, and only its host may be internal', async () => {
  for (const [url, trusted, hasCredentials] of [
    ['https://a.test/rpc', true, true],
    ['https://a.test:8443/rpc', true, false],
    ['https://b.test/rpc', false, false],
  ] as const) {
    const { client, calls } = setUpOutbound(rpcCard(url), () => asTask)
    await client.get('t1')
    assert.deepEqual([calls[0]?.trusted, calls[0]?.headers?.['X-Key']], [trusted, hasCredentials ? 'k' : undefined])
    assert.equal(calls[0]?.headers?.['A2A-Version'], '1.0')
  }
})

test('AG-17 a refusal for want of the withheld credentials says which URL to set; other refusals stay as they are', async () => {
  const withheld =
    'the card of https://a.test names https://b.test, which gets no credentials and refused the call; set url to https://b.test'
  const refusal = { body: { error: { code: -32_051, message: 'who?' } } }
  const refused = 'the remote agent refused: who?'
  const plain = 'the remote agent refuses our credentials (HTTP 401)'
  const cases: [url: string, answer: Answer, credentials: Record<string, string>, expected: string][] = [
    ['https://b.test/', { status: 401, body: '' }, CREDENTIALS, withheld],
    ['https://b.test/', { status: 403, body: '' }, CREDENTIALS, withheld],
    ['https://b.test/', refusal, CREDENTIALS, withheld],
    ['https://b.test/', { status: 401, body: '' }, {}, plain],
    ['https://b.test/', refusal, {}, refused],
    ['https://a.test/', { status: 401, body: '' }, CREDENTIALS, plain],
    ['https://a.test/', refusal, CREDENTIALS, refused],
  ]
  for (const [url, answer, credentials, expected] of cases) {
    const { client } = setUpOutbound(rpcCard(url), () => answer, credentials)
    await assert.rejects(client.get('t1'), { code: 'auth_failed', message: expected })
    await assert.rejects(all(client.subscribe('t1')), { code: 'auth_failed', message: expected })
  }
  const { client } = setUpOutbound(rpcCard('https://b.test/'), () => ({ status: 500, body: '' }))
  await assert.rejects(client.get('t1'), { code: 'agent_failed', message: /answered HTTP 500$/ })
})

test('AG-11 a failed answer keeps its status and the first 300 characters, and says if a retry may help', async () => {
  let status = 200
  const { client } = setUpOutbound(rpcCard('/rpc'), () => ({ status, body: `<${'x'.repeat(400)}` }))
  const retryable = [408, 425, 429, 500, 502, 503, 504]
  for (status of [199, 300, 302, 400, 404, 409, 501, 505, ...retryable]) {
    await assert.rejects(client.get('t1'), {
      code: status === 429 ? 'rate_limited' : 'agent_failed',
      message: `the remote agent at https://a.test answered HTTP ${status}`,
      retryable: retryable.includes(status),
      details: { status, said: `<${'x'.repeat(299)}` },
    })
  }
  for (status of [200, 299])
    await assert.rejects(client.get('t1'), { code: 'agent_failed', message: "the remote agent's answer is not JSON" })
})

test('AG-11 JSON without an error of A2A does not hide a failed status', async () => {
  let body = ''
  const { client } = setUpOutbound(rpcCard('/rpc'), () => ({ status: 500, body }))
  for (body of ['null', '{}', '{"error":null}', '{"error":{"message":"x"}}', '{"result":{"id":"t"}}'])
    await assert.rejects(client.get('t1'), { message: /answered HTTP 500$/ }, body)
})
