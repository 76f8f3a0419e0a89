import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import test from 'node:test'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../test/harness/clients/route-calls.ts'
import { openDoor } from '../../../test/harness/open-door.ts'
import { systemClock } from '../../clock.ts'
import type { Bridges } from '../../inbox/bridges.ts'
import { createMetrics } from '../../metrics.ts'
import type { WorkspaceRegistry } from '../../workspaces/registry.ts'
import type { WorkspaceLifecycle } from '../../workspaces/workspace.ts'
import { createApp } from './app.ts'
import { createAddresses } from './server/addresses.ts'
import { createHttpAuth } from './server/auth.ts'
import { createRateLimit } from './server/rate-limit.ts'
import { createReach } from './server/reach.ts'
import { SSE_LIMITS } from './server/sse.ts'
import { createWaitingCalls } from './server/waiting-calls.ts'
import { createWrongTokenLimit } from './server/wrong-token-limit.ts'

/** The app without a server, whose limits remember what they count. */
function createTestApp() {
  const fakePlatform = createFakePlatform()
  const counted: number[] = []
  const limit = { ...createRateLimit(systemClock), count: (_id: string, amount = 1) => void counted.push(amount) }
  const { tokens } = fakePlatform
  const addresses = createAddresses({ host: '127.0.0.1' })
  const auth = createHttpAuth({
    addresses,
    tokens,
    port: 1,
    rateLimit: limit,
    byteLimit: limit,
    wrongTokenLimit: createWrongTokenLimit(systemClock),
  })
  const bridges = recordPart<Bridges>({ begin: 'held' })
  const app = createApp({
    ...fakePlatform,
    auth,
    addresses,
    reach: createReach(fakePlatform.workspaces),
    metrics: createMetrics(),
    waitingCalls: createWaitingCalls(tokens),
    clock: systemClock,
    limits: SSE_LIMITS,
    webhookLimit: limit,
    version: '1',
    bridgeContext: { ...fakePlatform.bridgeContext, bridges: bridges.part },
    unready: async () => undefined,
    readCards: async () => new Map(),
  })
  /** The request as Node would give it to the app; the answer of a refusal is not written. */
  const send = async (path: string, body: string) => {
    const headers = { authorization: `Bearer ${secretOf('workspace')}` }
    const request = Object.assign(Readable.from([Buffer.from(body)]), {
      headers,
      url: path,
      method: 'POST',
    }) as unknown as IncomingMessage
    const outgoing = { headersSent: true, destroyed: true } as ServerResponse
    const env = { incoming: request, outgoing, requestId: 'req_1' }
    await app.fetch(new Request(`http://localhost${path}`, { method: 'POST' }), env)
  }
  return { send, counted }
}

test('PL-9 the rate limits count a request and the bytes of its body, but no call of a worker', async () => {
  const { send, counted } = createTestApp()
  const body = '{"type":"deployed","text":"x"}'
  await send(`/workspaces/${WORKSPACE_ID}/activity`, body)
  assert.deepEqual(counted, [1, body.length])
  const key = { conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  await send(`/workspaces/${WORKSPACE_ID}/inbox/begin`, JSON.stringify({ key }))
  assert.deepEqual(counted, [1, body.length])
})

test('CL-7 a route finds its workspace by its name, wherever the name stands in the path', async (t) => {
  const fakePlatform = createFakePlatform()
  const workspace = await fakePlatform.workspaces.get(WORKSPACE_ID)
  assert.ok(workspace)
  const registry = recordPart<WorkspaceRegistry>({ peers: [] })
  const lifecycle = recordPart<WorkspaceLifecycle>({ change: workspace, pause: workspace })
  const call = await openRoutes(t, { registry: registry.part, lifecycle: lifecycle.part })
  assert.equal((await call('GET /workspaces/echo')).json.id, WORKSPACE_ID)
  assert.equal((await call('GET /registry/discover/echo')).json.id, WORKSPACE_ID)
  assert.equal((await call('GET /registry/echo/peers')).status, 200)
  assert.deepEqual(registry.take(), [['peers', WORKSPACE_ID]])
  await call('PATCH /workspaces/echo', { body: { name: 'new' } })
  await call('POST /workspaces/echo/pause?now=true')
  assert.deepEqual(lifecycle.take(), [
    ['change', WORKSPACE_ID, { name: 'new' }],
    ['pause', WORKSPACE_ID, { now: true }],
  ])
  assert.equal((await call('GET /workspaces/nobody')).status, 404)
  assert.equal((await call('GET /workspaces/echo', { role: 'caller' })).status, 200)
})

test('PL-15 a slash at the end of a path makes no difference, and an unknown path is named and logged', async (t) => {
  const { sendRequest, fakePlatform } = await openDoor(t)
  const token = secretOf('viewer')
  assert.equal((await sendRequest('/version/', { token })).status, 200)
  const { status, json } = await sendRequest('/nowhere', { token, method: 'PUT' })
  assert.deepEqual([status, json.error.message], [404, 'there is nothing at PUT /nowhere'])
  const line = fakePlatform.logged.find(({ requestId }) => requestId === json.error.id)
  assert.deepEqual([line?.['code'], line?.['path'], line?.['method']], ['not_found', '/nowhere', 'PUT'])
})

test('PL-9 a body that may be absent counts as empty; any other must be JSON', async (t) => {
  const call = await openRoutes(t, {})
  assert.equal((await call('POST /login-links')).status, 201)
  assert.equal((await call('POST /login-links', { body: { role: 'owner' } })).status, 400)
  assert.equal((await call('POST /login-links', { body: '{' })).json.error.message, 'the body is not valid JSON')
  assert.equal((await call('POST /workspaces')).json.error.message, 'the body is not valid JSON')
})
