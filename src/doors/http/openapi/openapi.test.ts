import assert from 'node:assert/strict'
import test from 'node:test'
import { createFakePlatform, secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'
import { systemClock } from '../../../clock.ts'
import { createMetrics } from '../../../metrics.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import { REST_ROUTES } from '../a2a/rest.ts'
import { createApp } from '../app.ts'
import { createAddresses } from '../server/addresses.ts'
import { createHttpAuth } from '../server/auth.ts'
import { createRateLimit } from '../server/rate-limit.ts'
import { createReach } from '../server/reach.ts'
import { SSE_LIMITS } from '../server/sse.ts'
import { createWaitingCalls } from '../server/waiting-calls.ts'
import { createWrongTokenLimit } from '../server/wrong-token-limit.ts'
import { documentPath } from './openapi.ts'

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
