import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor } from '../../../../test/harness/open-door.ts'

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

test('PL-5 the card is cacheable by its ETag, separately for each version and address', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { headers, text } = await sendRequest(CARD)
  assert.match(String(headers.etag), /^"[\w-]+"$/)
  assert.equal(headers.vary, 'A2A-Version')
  assert.match(String(headers['cache-control']), /max-age=\d+/)
  assert.ok(Date.parse(String(headers['last-modified'])) > 0)
  for (const tag of [`${headers.etag}`, `W/${headers.etag}`, `"other", ${headers.etag}`, '*']) {
    const again = await sendRequest(CARD, { headers: { 'if-none-match': tag } })
    assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', headers.etag])
  }
  assert.equal((await sendRequest(CARD, { headers: { 'if-none-match': '"other"' } })).text, text)
  assert.notEqual((await sendRequest(CARD, { headers: V1 })).headers.etag, headers.etag)
  const elsewhere = await sendRequest(CARD, { headers: { host: 'localhost:1' } })
  assert.equal(elsewhere.json.url, `http://localhost:1/workspaces/${WORKSPACE_ID}/a2a`)
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
