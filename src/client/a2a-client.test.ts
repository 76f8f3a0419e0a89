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
import { readEvent } from './peer-words.ts'

type Rpc = { method: string; params: { id?: string; message?: Message; configuration?: object } }
type Talk = (rpc: Rpc, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

/** An agent that offers JSON-RPC of that version and answers as told. */
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

test('the card lies under a base URL, and a JSON file is the card itself', () => {
  assert.equal(cardUrl('https://a.test'), 'https://a.test/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/agents/one/'), 'https://a.test/agents/one/.well-known/agent-card.json')
  assert.equal(cardUrl('https://a.test/cards/one.json?v=2'), 'https://a.test/cards/one.json?v=2')
})

test('the first JSON-RPC interface of a card is chosen, in either form; others are refused by name', () => {
  const at = 'https://a.test/card.json'
  const grpc = { url: 'https://a.test/g', protocolBinding: 'GRPC', protocolVersion: '1.0' }
  const rpc = { url: '/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 't' }
  const chosen = readCard({ name: 'x', supportedInterfaces: [grpc, rpc] }, at)
  assert.deepEqual(chosen, { url: 'https://a.test/rpc', version: '1.0', streaming: false, name: 'x', tenant: 't' })
  const old = { url: 'https://a.test/rest', preferredTransport: 'HTTP+JSON', protocolVersion: '0.3.0' }
  const additionalInterfaces = [{ url: 'https://a.test/old', transport: 'JSONRPC' }]
  assert.equal(readCard({ ...old, additionalInterfaces }, at).url, 'https://a.test/old')
  assert.equal(readCard({ ...old, additionalInterfaces }, at).version, '0.3')
  // A hybrid card is spoken to in its newer version.
  assert.equal(readCard({ ...old, additionalInterfaces, supportedInterfaces: [rpc] }, at).version, '1.0')
  assert.throws(() => readCard({ supportedInterfaces: [grpc] }, at), /no JSON-RPC interface.*GRPC 1\.0/)
  assert.throws(() => readCard({ ...card('2.0', 'https://a.test') }, at), /no JSON-RPC interface/)
  assert.throws(() => readCard('a page', at), /no agent card/)
  assert.throws(() => readCard(card('1.0', 'http://a.test/rpc'), at), /not safe/)
})

test('a 1.0 agent is spoken to in 1.0 words and a 0.3 agent in 0.3 words, and both answer in ours', async (t) => {
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
  const words = { ...message, kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
  assert.deepEqual(asked[3]?.[0].params, { message: words, configuration: { blocking: false } })
})

test('extensions of a message are named in the header that the version has for them', async (t) => {
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

test('a stream is read event by event however its bytes are cut; a refusal in its place is an error', async (t) => {
  const update = (state: string) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } })
  const client = await agent(t, '1.0', async (rpc, response) => {
    if (rpc.method === 'SubscribeToTask') {
      return void response.end(
        JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'it is over' } }),
      )
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
  await assert.rejects(all(client.subscribe('t')), { code: 'unsupported_operation', message: /it is over/ })
})

test('what an agent refuses becomes an error of ours with its words, and says whether to try again', async (t) => {
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

test('an answer that is missing what matters is refused, and one that has too much of nothing is cleaned', () => {
  for (const value of [null, {}, { task: {} }, { kind: 'task', status: {} }, { message: { parts: [{}] } }]) {
    assert.throws(() => readEvent(value), { code: 'agent_failed' })
  }
  const bare = { messageId: 'm', role: 'ROLE_AGENT', contextId: '', extensions: [], metadata: {} }
  const parts = [{ text: 'x', mediaType: '', filename: '' }]
  const cleaned = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }] }
  assert.deepEqual(readEvent({ message: { ...bare, parts } }), { message: cleaned })
  const strange = readEvent({ task: { id: 't', status: { state: 'TASK_STATE_NEW' } } })
  assert.equal(strange.task?.status.state, 'TASK_STATE_WORKING')
})
