import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { agentCard, extendedCard } from './agent-card.ts'

const CARD = `/workspaces/${WORKSPACE_ID}/a2a/.well-known/agent-card.json`
const V1 = { 'a2a-version': '1.0' }

test('PL-5 the card needs no token; without a version it is a hybrid that clients of both versions can read', async (t) => {
  const { sendRequest, url } = await openDoor(t)
  const { status, json } = await sendRequest(CARD)
  assert.equal(status, 200)
  const a2aUrl = `${url}/workspaces/${WORKSPACE_ID}/a2a`
  assert.deepEqual(
    [json.name, json.protocolVersion, json.url, json.preferredTransport],
    ['echo', '0.3.0', a2aUrl, 'JSONRPC'],
  )
  assert.deepEqual(json.security, [{ bearer: [] }])
  assert.deepEqual([json.securitySchemes.bearer.type, json.securitySchemes.bearer.scheme], ['http', 'bearer'])
  assert.deepEqual(
    json.supportedInterfaces.map((one: Record<string, string>) => [one['protocolBinding'], one['protocolVersion']]),
    [
      ['JSONRPC', '1.0'],
      ['HTTP+JSON', '1.0'],
      ['JSONRPC', '0.3'],
    ],
  )
  assert.deepEqual((await sendRequest(CARD, { headers: { 'a2a-version': '0.3' } })).json, json)
})

test('PL-5 with A2A-Version 1.0 the card is plain and lists what is served', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { json } = await sendRequest(CARD, { headers: V1 })
  for (const old of ['url', 'protocolVersion', 'preferredTransport', 'security']) assert.equal(json[old], undefined)
  assert.deepEqual(json.capabilities, { streaming: true, pushNotifications: true, extendedAgentCard: true })
  const mediaTypes = ['text/plain', 'application/json', 'application/octet-stream']
  assert.deepEqual([json.defaultInputModes, json.defaultOutputModes], [mediaTypes, mediaTypes])
  assert.deepEqual(json.skills, [{ id: 'talk', name: 'Talk to echo', description: json.description, tags: ['chat'] }])
  assert.equal(json.securitySchemes.bearer.httpAuthSecurityScheme.scheme, 'Bearer')
  assert.deepEqual(json.securityRequirements, [{ schemes: { bearer: { list: [] } } }])
})

test('the card of an unknown workspace is 404, a foreign Host is refused, and only GET and HEAD are served', async (t) => {
  const { sendRequest } = await openDoor(t)
  assert.deepEqual(await sendRequest(CARD, { method: 'HEAD' }).then(({ status, text }) => [status, text]), [200, ''])
  assert.equal((await sendRequest(CARD, { method: 'POST', token: secretOf('admin') })).status, 404)
  const none = await sendRequest(CARD.replace(WORKSPACE_ID, 'ws_00000000000000000000000000'))
  assert.deepEqual([none.status, none.json.error.code], [404, 'not_found'])
  assert.equal((await sendRequest(CARD, { headers: { host: 'evil.example' } })).status, 403)
})

test('PL-5 the extended card needs a token and describes the workspace, in both versions', async (t) => {
  const { rpc } = await openDoor(t)
  const fresh = await rpc('GetExtendedAgentCard', {})
  assert.equal(fresh.json.result.url, undefined)
  assert.equal(fresh.json.result.capabilities.extensions[0].params.runtime, 'exec')
  const older = await rpc('agent/getAuthenticatedExtendedCard', {})
  assert.equal(older.json.result.protocolVersion, '0.3.0')
  assert.equal(older.json.result.capabilities.extensions[0].params.status, 'online')
  assert.equal((await rpc('GetExtendedAgentCard', {}, { token: 'wrong' })).status, 401)
})

const BASE = 'http://localhost:1'
const URL_OF_AGENT = `${BASE}/workspaces/ws_1/a2a`
const MEDIA_TYPES = ['text/plain', 'application/json', 'application/octet-stream']
const workspace = {
  id: 'ws_1',
  name: 'echo',
  role: '',
  runtime: 'exec',
  status: 'online',
  queueDepth: 3,
  running: 1,
} as Workspace & WorkspaceLoad
const capabilities = { streaming: true, pushNotifications: false, extendedAgentCard: true }
const options = { base: BASE, version: '1.2.3', capabilities, grpcPort: 5000 }

const PLAIN = {
  name: 'echo',
  description: 'The agent echo',
  version: '1.2.3',
  supportedInterfaces: [
    { url: URL_OF_AGENT, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: URL_OF_AGENT, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: 'localhost:5000', protocolBinding: 'GRPC', protocolVersion: '1.0', tenant: 'ws_1' },
    { url: URL_OF_AGENT, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  ],
  capabilities,
  securitySchemes: {
    bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'A token of this platform' } },
  },
  securityRequirements: [{ schemes: { bearer: { list: [] } } }],
  defaultInputModes: MEDIA_TYPES,
  defaultOutputModes: MEDIA_TYPES,
  skills: [{ id: 'talk', name: 'Talk to echo', description: 'The agent echo', tags: ['chat'] }],
}

test('PL-5 the plain card of 1.0 has every way to reach the agent', () => {
  assert.deepEqual(agentCard(workspace, options, '1.0'), PLAIN)
  const described = agentCard({ ...workspace, role: 'repeats' }, { ...options, grpcPort: undefined }, '1.0')
  assert.deepEqual(described, {
    ...PLAIN,
    description: 'repeats',
    supportedInterfaces: PLAIN.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding !== 'GRPC'),
    skills: [{ id: 'talk', name: 'Talk to echo', description: 'repeats', tags: ['chat'] }],
  })
})

test('PL-5 the hybrid card has also the fields that a client of 0.3 reads', () => {
  assert.deepEqual(agentCard(workspace, options, '0.3'), {
    ...PLAIN,
    protocolVersion: '0.3.0',
    url: URL_OF_AGENT,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url: URL_OF_AGENT, transport: 'JSONRPC' }],
    supportsAuthenticatedExtendedCard: true,
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        httpAuthSecurityScheme: { scheme: 'Bearer' },
        description: 'A token of this platform',
      },
    },
    security: [{ bearer: [] }],
  })
})

test('PL-5 the extended card describes the workspace in an extension that clients may ignore', () => {
  const extensionOf = (of: Workspace & WorkspaceLoad) => {
    const card = extendedCard(of, options, '1.0') as typeof PLAIN & { capabilities: { extensions: unknown[] } }
    const { extensions, ...rest } = card.capabilities
    assert.deepEqual({ ...card, capabilities: rest }, PLAIN)
    return extensions
  }
  const params = { workspace_id: 'ws_1', runtime: 'exec', status: 'online', queue_depth: 3, running: 1 }
  const extension = { uri: 'urn:molecule:workspace', required: false }
  assert.deepEqual(extensionOf(workspace), [{ ...extension, params }])
  const failed = { ...workspace, model: 'm-1', status: 'failed', statusReason: 'no /opt/bin/claude' } as const
  assert.deepEqual(extensionOf(failed), [
    { ...extension, params: { ...params, model: 'm-1', status: 'failed', status_reason: 'no claude' } },
  ])
})

test('PL-5 the answer with a card is cacheable for a minute, and the same card is answered with 304', async () => {
  const { send } = openA2a()
  const get = (given = {}) => send({ method: 'GET', path: '/.well-known/agent-card.json', token: '', headers: given })
  const { status, headers, text, json } = await get()
  const { ETag: etag, ...others } = headers
  assert.match(String(etag), /^"[\w-]{27}"$/)
  const cached = {
    'Last-Modified': 'Tue, 14 Nov 2023 22:13:20 GMT',
    'Cache-Control': 'public, max-age=60',
    Vary: 'A2A-Version',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': 'req_01',
  }
  const body = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
  assert.deepEqual([status, others], [200, { ...cached, ...body }])
  assert.deepEqual([json.protocolVersion, json.url], ['0.3.0', `${BASE}/workspaces/${WORKSPACE_ID}/a2a`])
  for (const tag of [`${etag}`, `W/${etag}`, `"x", ${etag}`, '*', ` * `]) {
    const again = await get({ 'if-none-match': tag })
    assert.deepEqual([again.status, again.text, again.headers], [304, '', { ETag: etag, ...cached }], tag)
  }
  for (const tag of ['"x"', '', `x${etag}`, `${etag}x`, '**'])
    assert.deepEqual([(await get({ 'if-none-match': tag })).status], [200], tag)
})

test('PL-12 a name leads to a card only with a token that reaches it', async () => {
  const { send } = openA2a()
  const get = async (token: string) =>
    (await send({ method: 'GET', path: '/.well-known/agent-card.json', workspace: 'echo', token })).status
  assert.deepEqual([await get(''), await get('wrong'), await get('caller-secret')], [401, 401, 200])
})
