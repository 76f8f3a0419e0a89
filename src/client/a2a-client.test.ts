import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { MoleculeError } from '../errors.ts'
import type { Message } from '../protocol/a2a.ts'
import { createA2aClient } from './a2a-client.ts'
import { cardUrl, readCard } from './agent-card.ts'
import { createOutbound } from './outbound.ts'
import { readRemoteEvent } from './remote-agent-events.ts'

type Rpc = { method: string; params: { id?: string; message?: Message; configuration?: object } }
type Talk = (rpc: Rpc, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

/** An agent that offers JSON-RPC of that version, with scripted answers. */
async function agent(t: TestContext, version: string, talk: Talk) {
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify(card(version, `${url}/rpc`)))
    await talk(JSON.parse(await text(request)) as Rpc, response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
const result = (response: ServerResponse, value: object) =>
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: value }))

test('the card is below a base URL, and a JSON file is the card itself', () => {
  assert.equal(cardUrl('https://a.test'), 'https://a.test/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/agents/one/'), 'https://a.test/agents/one/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/cards/one.json?v=2'), 'https://a.test/cards/one.json?v=2')
})

test('AG-11 the first JSON-RPC interface of a card is chosen, else REST of 1.0; others are refused by name', () => {
  const at = 'https://a.test/card.json'
  const grpc = { url: 'https://a.test/g', protocolBinding: 'GRPC', protocolVersion: '1.0' }
  const rpc = { url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 't' }
  const chosen = readCard({ name: 'x', supportedInterfaces: [grpc, rpc] }, at)
  const expected = { url: 'https://a.test/rpc', version: '1.0', binding: 'JSONRPC', streaming: false, name: 'x' }
  assert.deepEqual(chosen, { ...expected, tenant: 't' })
  const rest = { url: '/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }
  assert.equal(readCard({ supportedInterfaces: [rest, rpc] }, at).binding, 'JSONRPC')
  assert.equal(readCard({ supportedInterfaces: [grpc, rest] }, at).binding, 'HTTP+JSON')
  const old = { url: 'https://a.test/rest', preferredTransport: 'HTTP+JSON', protocolVersion: '0.3.0' }
  const additionalInterfaces = [{ url: 'https://a.test/old', transport: 'JSONRPC' }]
  assert.equal(readCard({ ...old, additionalInterfaces }, at).url, 'https://a.test/old')
  assert.equal(readCard({ ...old, additionalInterfaces }, at).version, '0.3')
  // A card with both versions is called in the newer one.
  assert.equal(readCard({ ...old, additionalInterfaces, supportedInterfaces: [rpc] }, at).version, '1.0')
  assert.throws(() => readCard({ supportedInterfaces: [grpc] }, at), /neither JSON-RPC.*GRPC 1\.0/)
  assert.throws(() => readCard({ ...card('2.0', 'https://a.test') }, at), /neither JSON-RPC/)
  assert.throws(() => readCard('a page', at), /not an agent card/)
  assert.throws(() => readCard(card('1.0', 'http://a.test/rpc'), at), /not safe/)
})

test('each agent is called in its own version, and its answer is read as 1.0', async (t) => {
  const asked: [Rpc, unknown, unknown][] = []
  const task = { id: 't1', contextId: 'c1' }
  const modern = await agent(t, '1.0', (rpc, response, { headers }) => {
    asked.push([rpc, headers['a2a-version'], headers['x-key']])
    const whole = { ...task, status: { state: 'TASK_STATE_WORKING' } }
    result(response, rpc.method === 'SendMessage' ? { task: whole } : whole)
  })
  const old = await agent(t, '0.3.0', (rpc, response, { headers }) => {
    asked.push([rpc, headers['a2a-version'], headers['x-key']])
    result(response, { ...task, kind: 'task', status: { state: 'working' } })
  })
  const expected = { ...task, status: { state: 'TASK_STATE_WORKING' } }
  for (const client of [modern, old]) {
    assert.deepEqual(await client.send({ message }), { task: expected })
    assert.deepEqual(await client.get('t1'), expected)
    assert.deepEqual(await client.cancel('t1'), expected)
  }
  assert.deepEqual(
    asked.map(([rpc, version, key]) => [rpc.method, version, key]),
    [
      ...['SendMessage', 'GetTask', 'CancelTask'].map((method) => [method, '1.0', 'k']),
      ...['message/send', 'tasks/get', 'tasks/cancel'].map((method) => [method, '0.3', 'k']),
    ],
  )
  assert.deepEqual(asked[0]?.[0].params, { message, configuration: { returnImmediately: true } })
  const expectedMessage = { ...message, kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
  assert.deepEqual(asked[3]?.[0].params, { message: expectedMessage, configuration: { blocking: false } })
})

test('a call has two minutes in all, and a stream lasts as long as its task', async (t) => {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify(card('1.0', `${url}/rpc`)))
    const event = { jsonrpc: '2.0', id: 1, result: { task: { id: 't', status: { state: 'TASK_STATE_WORKING' } } } }
    const isStream = request.headers.accept === 'text/event-stream'
    response.setHeader('Content-Type', isStream ? 'text/event-stream' : 'application/json')
    response.end(isStream ? `data: ${JSON.stringify(event)}\n\n` : JSON.stringify(event))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const outbound = createOutbound()
  const limits: (number | undefined)[] = []
  const send: typeof outbound.send = (request, signal) => {
    if (request.method === 'POST') limits.push(request.totalMs)
    return outbound.send(request, signal)
  }
  const client = createA2aClient({ url, outbound: { ...outbound, send }, headers: async () => ({}) })
  await client.send({ message })
  await all(client.stream({ message }))
  assert.deepEqual(limits, [120_000, undefined])
})

test('extensions of a message are named in the header of the version', async (t) => {
  const named: unknown[] = []
  const talk: Talk = (_rpc, response, { headers }) => {
    named.push(headers['a2a-extensions'] ?? headers['x-a2a-extensions'])
    result(response, { kind: 'message', messageId: 'r', role: 'agent', parts: [{ kind: 'text', text: 'x' }] })
  }
  for (const version of ['1.0', '0.3.0']) {
    const client = await agent(t, version, talk)
    await client.send({ message: { ...message, extensions: ['https://a.test/x', 'https://a.test/y'] } })
    await client.send({ message })
  }
  const both = 'https://a.test/x, https://a.test/y'
  assert.deepEqual(named, [both, undefined, both, undefined])
})

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
    [(response) => response.writeHead(404).end('<html>'), 'agent_failed', false],
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

test('an answer without a required field is refused, and empty fields are removed', () => {
  for (const value of [null, {}, { task: {} }, { kind: 'task', status: {} }, { message: { parts: [{}] } }]) {
    assert.throws(() => readRemoteEvent(value), { code: 'agent_failed' })
  }
  const bare = { messageId: 'm', role: 'ROLE_AGENT', contextId: '', extensions: [], metadata: {} }
  const parts = [{ text: 'x', mediaType: '', filename: '' }]
  const cleaned = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }] }
  assert.deepEqual(readRemoteEvent({ message: { ...bare, parts } }), { message: cleaned })
  const strange = readRemoteEvent({ task: { id: 't', status: { state: 'TASK_STATE_NEW' } } })
  assert.equal(strange.task?.status.state, 'TASK_STATE_WORKING')
})

test('an event of an agent keeps all its fields', () => {
  const lists = { extensions: ['e'], referenceTaskIds: ['r'] }
  const said = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }], contextId: 'c', taskId: 't', ...lists }
  const status = { state: 'TASK_STATE_INPUT_REQUIRED', message: said, timestamp: '2026-01-02T03:04:05.678Z' }
  const artifact = { artifactId: 'a', name: 'n', description: 'd', parts: [{ text: 'made' }], extensions: ['e'] }
  const ids = { taskId: 't', contextId: 'c' }
  const task = { id: 't', contextId: 'c', status, artifacts: [artifact], history: [said], metadata: { k: 1 } }
  for (const event of [
    { task },
    { message: said },
    { statusUpdate: { ...ids, status, metadata: { k: 1 } } },
    { artifactUpdate: { ...ids, artifact, append: true, lastChunk: false } },
    { artifactUpdate: { ...ids, artifact, append: false, lastChunk: true } },
  ]) {
    assert.deepEqual(readRemoteEvent(event), event)
  }
})

test('an empty field of an event counts as absent, because protocol buffers send it so', () => {
  const parts = [{ text: 'x' }]
  const empty = { contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: {} }
  assert.deepEqual(readRemoteEvent({ message: { messageId: 'm', role: 'ROLE_USER', parts, ...empty } }), {
    message: { messageId: 'm', role: 'ROLE_USER', parts },
  })
  const artifact = { artifactId: 'a', parts, name: '', description: '', extensions: [], metadata: {} }
  const status = { state: 'TASK_STATE_WORKING', message: null, timestamp: null }
  const task = { id: 't', contextId: '', status, artifacts: [artifact], history: [], metadata: {} }
  assert.deepEqual(readRemoteEvent({ task }), {
    task: { id: 't', contextId: '', status: { state: 'TASK_STATE_WORKING' }, artifacts: [{ artifactId: 'a', parts }] },
  })
  assert.deepEqual(readRemoteEvent({ task: { ...task, artifacts: [] } }), {
    task: { id: 't', contextId: '', status: { state: 'TASK_STATE_WORKING' } },
  })
})

/** An agent that offers only 1.0 over REST, for a tenant. */
async function restAgent(t: TestContext, talk: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    if (request.url?.endsWith('agent-card.json')) {
      const offer = { url: '/rest/', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: 'a b' }
      return void response.end(JSON.stringify({ capabilities: { streaming: true }, supportedInterfaces: [offer] }))
    }
    text(request).then((body) => {
      asked.push(`${request.method} ${request.url} ${body}`)
      talk(request, response)
    }, assert.fail)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
    [400, 'UNSUPPORTED_OPERATION', 'unsupported_operation', false],
    [400, 'TASK_NOT_CANCELABLE', 'not_cancelable', false],
    [404, undefined, 'unsupported_operation', false],
    [401, undefined, 'auth_failed', false],
    [403, undefined, 'agent_failed', false],
    [429, undefined, 'rate_limited', true],
    [500, undefined, 'agent_failed', true],
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
  let visits = 0
  const inside = createServer((_request, response) => {
    visits += 1
    response.end('{}')
  })
  inside.listen(0, '127.0.0.1')
  await once(inside, 'listening')
  const port = (inside.address() as AddressInfo).port
  t.after(() => inside.close())
  const resolve = async () => [{ address: '127.0.0.1', family: 4 } as const]
  const cards = createServer((request, response) => {
    if (request.url?.startsWith('/hop'))
      return void response.writeHead(307, { Location: `http://127.0.0.1:${port}/` }).end()
    response.end(JSON.stringify(card('1.0', request.url?.startsWith('/far') ? `http://127.0.0.1:${port}/` : '/hop')))
  })
  cards.listen(0, '127.0.0.1')
  await once(cards, 'listening')
  t.after(() => {
    cards.closeAllConnections()
    cards.close()
  })
  for (const path of ['far', 'near']) {
    const url = `http://agent.test:${(cards.address() as AddressInfo).port}/${path}`
    const client = createA2aClient({ url, outbound: createOutbound({ resolve }), headers: async () => ({}) })
    await assert.rejects(client.send({ message }), { code: 'forbidden', message: /127\.0\.0\.1 is a loopback/ }, path)
    const outbound = createOutbound({ resolve, allow: ['127.0.0.1'] })
    await assert.rejects(createA2aClient({ url, outbound, headers: async () => ({}) }).get('t'), {
      code: 'agent_failed',
    })
  }
  assert.equal(visits, 2, 'only those that the owner allowed')
})
