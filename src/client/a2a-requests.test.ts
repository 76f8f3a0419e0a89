/** What the client of remote agents asks of `Outbound`, and what it makes of each answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from '../protocol/a2a.ts'
import { createA2aClient } from './a2a-client.ts'
import type { OutboundResponse } from './dial.ts'
import type { Outbound, OutboundRequest } from './outbound.ts'

interface Answer {
  readonly status?: number
  readonly type?: string
  readonly body: unknown
}

const URL_GIVEN = 'https://a.test'
const CREDENTIALS = { 'X-Key': 'k' }
const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
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
function setUp(card: object, answer: () => Answer, credentials: Record<string, string> = CREDENTIALS) {
  const cards: OutboundRequest[] = []
  const calls: OutboundRequest[] = []
  const outbound: Outbound = {
    check: async () => undefined,
    async send(request) {
      const isCard = request.url.endsWith('agent-card.json')
      ;(isCard ? cards : calls).push(request)
      return toResponse(isCard ? { body: card } : answer())
    },
  }
  const client = createA2aClient({ url: URL_GIVEN, outbound, headers: async () => credentials })
  return { client, cards, calls }
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

test('AG-11 the card and each call are asked for with their headers and limits; a stream has no limit in all', async () => {
  const event = { type: 'text/event-stream; charset=utf-8', body: `data: ${JSON.stringify({ result: { task } })}\n\n` }
  const answers = [asTask, event]
  const { client, cards, calls } = setUp(rpcCard('/rpc', { tenant: 'one' }), () => answers.shift() ?? asTask)
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
  const { client, calls } = setUp({ url: '/old', protocolVersion: '0.3.0' }, () => ({
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
  assert.deepEqual(
    calls.map(({ headers }) => [headers?.['X-A2A-Extensions'], headers?.['A2A-Extensions'], headers?.['A2A-Version']]),
    [['e', undefined, '0.3'], ...Array.from({ length: 4 }, () => [undefined, undefined, '0.3'])],
  )
})

test('AG-11 over REST without a tenant the route is right below the URL of the interface', async () => {
  const rest = { protocolBinding: 'HTTP+JSON' }
  const { client, calls } = setUp(rpcCard('https://a.test/rest//', rest), () => ({ body: { task } }))
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
  const { client, cards } = setUp(rpcCard('/rpc'), () => asTask)
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
    const { client, calls } = setUp(rpcCard(url), () => asTask)
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
    const { client } = setUp(rpcCard(url), () => answer, credentials)
    await assert.rejects(client.get('t1'), { code: 'auth_failed', message: expected })
    await assert.rejects(all(client.subscribe('t1')), { code: 'auth_failed', message: expected })
  }
  const { client } = setUp(rpcCard('https://b.test/'), () => ({ status: 500, body: '' }))
  await assert.rejects(client.get('t1'), { code: 'agent_failed', message: /answered HTTP 500$/ })
})

test('AG-11 a failed answer keeps its status and the first 300 characters, and says if a retry may help', async () => {
  let status = 200
  const { client } = setUp(rpcCard('/rpc'), () => ({ status, body: `<${'x'.repeat(400)}` }))
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
  const { client } = setUp(rpcCard('/rpc'), () => ({ status: 500, body }))
  for (body of ['null', '{}', '{"error":null}', '{"error":{"message":"x"}}', '{"result":{"id":"t"}}'])
    await assert.rejects(client.get('t1'), { message: /answered HTTP 500$/ }, body)
  body = '{"error":{"code":-32001,"message":"no such"}}'
  await assert.rejects(client.get('t1'), { code: 'not_found', message: 'the remote agent refused: no such' })
})
