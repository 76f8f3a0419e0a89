import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { type DoorRequest, openDoor, sendParams } from '../../../../test/harness/open-door.ts'

test('PL-12 only an issued secret is accepted, on loopback too', async (t) => {
  const { sendRequest } = await openDoor(t)
  for (const token of [undefined, 'wrong-secret', 'Admin-secret', `${secretOf('admin')}x`]) {
    const { status, headers } = await sendRequest('/workspaces', { token })
    assert.equal(status, 401, String(token))
    assert.match(String(headers['www-authenticate']), /^Bearer /)
  }
})

test('a denial names the role and the action', async (t) => {
  const { sendRequest } = await openDoor(t)
  const { json } = await sendRequest('/workspaces', { method: 'POST', body: '{"name":"x"}', token: secretOf('viewer') })
  assert.equal(json.error.code, 'forbidden')
  assert.match(json.error.message, /role viewer; workspace.create needs admin/)
})

test('an Authorization header without a valid bearer token is 401', async (t) => {
  const { sendRequest } = await openDoor(t)
  const secret = secretOf('admin')
  for (const authorization of ['', 'Bearer', 'Bearer ', secret, `Basic ${secret}`, `Bearer ${secret} more`]) {
    assert.equal((await sendRequest('/workspaces', { headers: { authorization } })).status, 401, authorization)
  }
  assert.equal((await sendRequest('/workspaces', { headers: { authorization: `bearer  ${secret}` } })).status, 200)
})

test('a wrong Authorization header is refused even with a valid cookie', async (t) => {
  const { sendRequest, cookie } = await loggedIn(t)
  const headers = { cookie, authorization: 'Bearer wrong' }
  assert.equal((await sendRequest('/workspaces', { headers })).status, 401)
})

test("with a cookie, reading needs no Origin and changing needs the platform's Origin", async (t) => {
  const { sendRequest, cookie, url } = await loggedIn(t)
  assert.equal((await sendRequest('/workspaces', { headers: { cookie } })).status, 200)
  const { host } = new URL(url)
  const post = (origin: string | undefined): DoorRequest => ({
    method: 'POST',
    body: '{"name":"new"}',
    headers: { cookie, ...(origin === undefined ? {} : { origin }) },
  })
  for (const origin of [undefined, 'null', 'http://127.0.0.1:1', 'http://evil.example', `http://evil.${host}`, '']) {
    assert.equal((await sendRequest('/workspaces', post(origin))).status, 403, String(origin))
  }
  assert.equal((await sendRequest('/workspaces', post(`http://${host}`))).status, 201)
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: sendParams('hello') })
  const a2a = `/workspaces/${WORKSPACE_ID}/a2a`
  assert.equal((await sendRequest(a2a, { ...post('http://evil.example'), body: message })).status, 403)
  assert.equal((await sendRequest(a2a, { ...post(`http://${host}`), body: message })).status, 200)
})

test('a request with a bearer token needs no Origin, because no browser adds the token by itself', async (t) => {
  const { sendRequest } = await openDoor(t)
  const headers = { origin: 'http://tool.example' }
  const answer = await sendRequest('/workspaces', {
    method: 'POST',
    body: '{"name":"x"}',
    headers,
    token: secretOf('admin'),
  })
  assert.equal(answer.status, 201)
})

test('PL-8 a task is visible to its principal, its workspace and people; for other callers it does not exist', async (t) => {
  const { rpc: call, fakePlatform } = await openDoor(t)
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  const { secret: peer } = await fakePlatform.tokens.create({
    name: 'peer',
    role: 'workspace',
    workspaceId: sibling.id,
  })
  const program = await fakePlatform.tokens.create({ name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID] })
  const { json } = await call('SendMessage', sendParams('hello'), { token: program.secret })
  const seen = async (token: string) =>
    (await call('GetTask', { id: json.result.task.id }, { token })).json.error?.code ?? 'seen'
  for (const role of ['admin', 'member', 'viewer', 'workspace'] as const)
    assert.equal(await seen(secretOf(role)), 'seen')
  assert.equal(await seen(program.secret), 'seen')
  for (const stranger of [secretOf('caller'), secretOf('conversation'), peer]) {
    assert.equal(await seen(stranger), -32001, stranger)
  }
})

async function loggedIn(t: Parameters<typeof openDoor>[0]) {
  const opened = await openDoor(t)
  const body = JSON.stringify({ code: opened.fakePlatform.tokens.issueLoginCode() })
  const { headers } = await opened.sendRequest('/login', { method: 'POST', body })
  return { ...opened, cookie: String(headers['set-cookie']?.[0]).split(';')[0] ?? '' }
}
