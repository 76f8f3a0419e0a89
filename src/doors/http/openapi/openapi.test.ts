import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { systemClock } from '../../../clock.ts'
import { parseDuration } from '../../../duration.ts'
import { createMetrics } from '../../../metrics.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import { REST_ROUTES } from '../a2a/rest.ts'
import { createApp, ROUTES } from '../app.ts'
import { createAddresses } from '../server/addresses.ts'
import { createHttpAuth } from '../server/auth.ts'
import { createRateLimit } from '../server/rate-limit.ts'
import { createReach } from '../server/reach.ts'
import { SSE_LIMITS } from '../server/sse.ts'
import { createWaitingCalls } from '../server/waiting-calls.ts'
import { createWrongTokenLimit } from '../server/wrong-token-limit.ts'
import { describeApi, documentPath } from './openapi.ts'

test('PL-10 the API document has every route that is served, and no other', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { status, json } = await sendRequest('/openapi.json', { token: secretOf('viewer') })
  assert.equal(status, 200)
  assert.equal(json.openapi, '3.1.0')
  const fakePlatform = createFakePlatform()
  const addresses = createAddresses({ host: '127.0.0.1' })
  const auth = createHttpAuth({
    addresses,
    tokens: fakePlatform.tokens,
    port: 1,
    rateLimit: createRateLimit(systemClock),
    byteLimit: createRateLimit(systemClock),
    wrongTokenLimit: createWrongTokenLimit(systemClock),
  })
  const rest = {
    version: '1',
    unready: async () => undefined,
    auth,
    addresses,
    reach: createReach(fakePlatform.workspaces),
    readCards: async () => new Map(),
    webhookLimit: createRateLimit(systemClock),
  }
  const streaming = { waitingCalls: createWaitingCalls(fakePlatform.tokens), clock: systemClock, limits: SSE_LIMITS }
  const app = createApp({ ...fakePlatform, ...rest, ...streaming, metrics: createMetrics() })
  const served = app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method.toLowerCase()} ${documentPath(path)}`)
  // A2A is answered before the router: JSON-RPC, the card, and the REST binding.
  const a2a = '/workspaces/{id}/a2a'
  served.push(`post ${a2a}`, `get ${a2a}/.well-known/agent-card.json`, `get ${a2a}/.well-known/agent.json`)
  for (const { http, template, name } of REST_ROUTES) {
    if (A2A_ACTIONS.has(name)) served.push(`${http.toLowerCase()} ${a2a}${template}`)
  }
  const described = Object.entries(json.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  )
  assert.deepEqual([...new Set(served)].sort(), described.sort())
})

test('PL-10 the API document names for each route its success, whether it needs a token, and whether it needs a body', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { json } = await sendRequest('/openapi.json', { token: secretOf('viewer') })
  for (const [path, methods] of Object.entries(json.paths as Record<string, Record<string, { responses: object }>>)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      const [status, other] = Object.keys(responses)
      // An MCP server without streams and sessions answers GET and DELETE with 405.
      const isMcpStream = method !== 'post' && path === '/workspaces/{id}/mcp'
      assert.match(String(status), isMcpStream ? /^405$/ : /^(?:101|20[0-4])$/, `${method} ${path}`)
      assert.equal(other, 'default')
    }
  }
  const security = (path: string, method: string) => json.paths[path][method].security
  assert.deepEqual(security('/health', 'get'), [])
  assert.deepEqual(security('/workspaces', 'get'), [{ bearer: [] }, { session: [] }])
  assert.equal(json.paths['/workspaces']['post'].requestBody.required, true)
  assert.equal(json.paths['/login-links']['post'].requestBody?.required, false)
})

test('PL-10 every reference in the API document resolves', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { json, text } = await sendRequest('/openapi.json', { token: secretOf('admin') })
  const references = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => String(path))
  assert.ok(references.length > 5)
  for (const reference of references) {
    let at = json
    for (const step of reference.split('/')) at = at?.[step]
    assert.ok(at, reference)
  }
  assert.doesNotMatch(text, /\$defs/)
})

test('PL-15 every role may read the version', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { json } = await sendRequest('/version', { token: secretOf('conversation') })
  assert.deepEqual([json.name, json.version], ['molecule', '1.2.3'])
})

const { info, paths, components } = describeApi(ROUTES, '1.2.3')
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
)
const text = { type: 'string' }

test('PL-10 the API document describes an operation completely: path, roles, body, answer, refusal', () => {
  const parameter = (name: string) => ({ name, in: 'path', required: true, schema: text })
  const refused = { $ref: '#/components/responses/Error' }
  const secured = [{ bearer: [] }, { session: [] }]
  assert.deepEqual(paths['/workspaces/{id}/dead-letters/{message}']?.['delete'], {
    summary: 'Discard a dead letter',
    operationId: 'delete_workspaces_id_dead_letters_message',
    'x-action': 'dead-letter.handle',
    'x-roles': ['admin', 'member'],
    security: secured,
    parameters: [parameter('id'), parameter('message')],
    responses: { 204: { description: 'Done' }, default: refused },
  })
  const create = paths['/tokens']?.['post']
  assert.deepEqual(create?.requestBody, {
    required: true,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/post_tokens' } } },
  })
  assert.equal('parameters' in create, false)
  assert.deepEqual(paths['/me']?.['get']?.['responses'], {
    200: {
      description: 'The caller',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/get_me_answer' } } },
    },
    default: refused,
  })
  assert.deepEqual(paths['/tokens/{id}']?.['delete']?.['parameters'], [parameter('id')])
})

test('PL-10 the API document names the ways to log in, and the form of an error', () => {
  assert.deepEqual(info, { title: 'Molecule', version: '1.2.3' })
  assert.deepEqual(components['securitySchemes'], {
    bearer: { type: 'http', scheme: 'bearer' },
    session: { type: 'apiKey', in: 'cookie', name: 'molecule_session' },
  })
  const place = { line: { type: 'integer' }, column: { type: 'integer' }, message: text }
  const problems = {
    type: 'array',
    description: 'Of a file that was sent: what is wrong, and where.',
    items: { type: 'object', properties: place, required: ['line', 'column', 'message'] },
  }
  const error = {
    type: 'object',
    properties: { code: text, message: text, hint: text, problems, id: text },
    required: ['code', 'message', 'id'],
  }
  assert.deepEqual(components.schemas['Error'], { type: 'object', properties: { error }, required: ['error'] })
  const schema = { $ref: '#/components/schemas/Error' }
  const responses = components['responses'] as Record<string, object>
  assert.deepEqual(responses['Error'], {
    description: 'Refused, with the reason',
    content: { 'application/json': { schema } },
  })
})

test('PL-10 the API document has for each binding of A2A the form of its errors and its media types', () => {
  const refused = ({ operation }: (typeof operations)[number]) => Object(operation['responses']).default.$ref
  const media = ({ operation }: (typeof operations)[number]) => Object.keys(Object(operation['responses'])[200].content)
  const find = (name: string) => operations.filter((each) => each.name === name)
  const [rpc] = find('post /workspaces/{id}/a2a').map((each) => [refused(each), media(each)])
  assert.deepEqual(rpc, ['#/components/responses/JsonRpcError', ['application/json', 'text/event-stream']])
  for (const each of operations.filter(({ operation }) => operation['x-a2a-method'] !== undefined)) {
    assert.equal(refused(each), '#/components/responses/A2aRestError', each.name)
    const isStream = /Streaming|Subscribe/.test(String(each.operation['x-a2a-method']))
    const expected = isStream ? ['text/event-stream'] : ['application/a2a+json', 'application/json']
    assert.deepEqual(media(each), expected, each.name)
  }
  const card = find('get /workspaces/{id}/a2a/.well-known/agent-card.json').map(refused)
  assert.deepEqual(card, ['#/components/responses/Error'])
})

test('PL-10 no schema of the API document leads back to itself: a generated client would not compile', () => {
  const referred = (node: unknown): string[] =>
    [...JSON.stringify(node).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => String(name))
  const visit = (name: string, path: readonly string[]): void => {
    assert.ok(!path.includes(name), [...path, name].join(' > '))
    for (const next of referred(components.schemas[name])) visit(next, [...path, name])
  }
  for (const name of Object.keys(components.schemas)) visit(name, [])
  const { properties } = components.schemas['post_workspaces'] as { properties: Record<string, object> }
  const config = { type: 'object', propertyNames: text, additionalProperties: {} }
  assert.deepEqual(properties['runtime_config'], config, 'any JSON value')
})

test('PL-10 the API document has the methods of A2A at its one JSON-RPC route, and bodies only where they are sent', () => {
  const withMethods = operations.filter(({ operation }) => 'x-a2a-methods' in operation)
  assert.deepEqual(
    withMethods.map(({ name }) => name),
    ['post /workspaces/{id}/a2a'],
  )
  const [a2a] = withMethods
  const schema = { $ref: '#/components/schemas/JsonRpcRequest' }
  assert.deepEqual(a2a?.operation.requestBody, { required: true, content: { 'application/json': { schema } } })
  assert.deepEqual(a2a?.operation['x-roles'], [])
  const rest = operations.filter(({ operation }) => operation['x-a2a-method'] !== undefined)
  assert.ok(rest.length >= 10)
  for (const { name, operation } of rest)
    assert.equal(operation.requestBody?.required, name.startsWith('post ') ? false : undefined, name)
  for (const { name, operation } of operations)
    if (name.startsWith('get ')) assert.equal(operation.requestBody, undefined, name)
})

test('PL-10 a successful answer without a body says what has happened', () => {
  const described = operations.flatMap(({ operation }) => {
    const { 204: empty } = operation['responses'] as Record<number, { description: string }>
    return empty === undefined ? [] : [empty.description]
  })
  const known = [
    'Done',
    'It is deleted',
    'It is forgotten',
    'It is removed',
    'It is unbound',
    'The cookie',
    'The cookie is cleared',
  ]
  assert.deepEqual([...new Set(described)].sort(), known)
  const names = new Set(operations.map(({ operation }) => operation['operationId']))
  assert.equal(names.size, operations.length, 'each operation has its own name')
})

test('PL-10 the examples of durations in the API document are durations', () => {
  const { properties } = components.schemas['post_tokens'] as { properties: Record<string, { examples?: string[] }> }
  const examples = properties['expires_in']?.examples ?? []
  assert.deepEqual(examples.map(parseDuration), [600_000])
})
