import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import type { Workspace, WorkspaceLoad } from '../../../workspaces/workspace.ts'
import { agentCard, extendedCard } from './agent-card.ts'

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

test('PL-5 the version header chooses the form of the card', async () => {
  const { send } = openA2a()
  const isPlain = async (version?: string) => {
    const headers = version === undefined ? {} : { 'a2a-version': version }
    const { json } = await send({ method: 'GET', path: '/.well-known/agent-card.json', token: '', headers })
    return json.protocolVersion === undefined
  }
  assert.deepEqual(await Promise.all([isPlain(), isPlain('1.0'), isPlain('1.9'), isPlain('0.3'), isPlain('10.0')]), [
    ...[false, true, true, false, false],
  ])
})

test('PL-12 a name leads to a card only with a token that reaches it', async () => {
  const { send } = openA2a()
  const get = async (token: string) =>
    (await send({ method: 'GET', path: '/.well-known/agent-card.json', workspace: 'echo', token })).status
  assert.deepEqual([await get(''), await get('wrong'), await get('caller-secret')], [401, 401, 200])
})
