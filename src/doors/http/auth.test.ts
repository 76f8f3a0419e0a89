import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../test/fakes/desk.ts'
import { type Knock, openDoor, say } from '../../../test/fakes/open-door.ts'

test('PL-12 only a secret as it was issued is a token, on loopback too', async (t) => {
  const { knock } = await openDoor(t)
  for (const token of [undefined, 'wrong-secret', 'Admin-secret', `${secretOf('admin')}x`]) {
    const { status, headers } = await knock('/workspaces', { token })
    assert.equal(status, 401, String(token))
    assert.match(String(headers['www-authenticate']), /^Bearer /)
  }
})

test('a denial says why in words', async (t) => {
  const { knock } = await openDoor(t)
  const { json } = await knock('/workspaces', { method: 'POST', body: '{"name":"x"}', token: secretOf('viewer') })
  assert.equal(json.error.code, 'forbidden')
  assert.match(json.error.message, /role viewer; workspace.create needs admin/)
})

test('an Authorization header that is no bearer token is 401', async (t) => {
  const { knock } = await openDoor(t)
  const secret = secretOf('admin')
  for (const authorization of ['', 'Bearer', 'Bearer ', secret, `Basic ${secret}`, `Bearer ${secret} more`]) {
    assert.equal((await knock('/workspaces', { headers: { authorization } })).status, 401, authorization)
  }
  assert.equal((await knock('/workspaces', { headers: { authorization: `bearer  ${secret}` } })).status, 200)
})

test('a wrong header is not saved by a good cookie', async (t) => {
  const { knock, cookie } = await loggedIn(t)
  const headers = { cookie, authorization: 'Bearer wrong' }
  assert.equal((await knock('/workspaces', { headers })).status, 401)
})

test('by cookie, reading needs no Origin and changing needs this one', async (t) => {
  const { knock, cookie, url } = await loggedIn(t)
  assert.equal((await knock('/workspaces', { headers: { cookie } })).status, 200)
  const { host } = new URL(url)
  const post = (origin: string | undefined): Knock => ({
    method: 'POST',
    body: '{"name":"new"}',
    headers: { cookie, ...(origin === undefined ? {} : { origin }) },
  })
  for (const origin of [undefined, 'null', 'http://127.0.0.1:1', 'http://evil.example', `http://evil.${host}`, '']) {
    assert.equal((await knock('/workspaces', post(origin))).status, 403, String(origin))
  }
  assert.equal((await knock('/workspaces', post(`http://${host}`))).status, 201)
  const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: say('hello') })
  const a2a = `/workspaces/${WORKSPACE_ID}/a2a`
  assert.equal((await knock(a2a, { ...post('http://evil.example'), body: message })).status, 403)
  assert.equal((await knock(a2a, { ...post(`http://${host}`), body: message })).status, 200)
})

test('a bearer token in a browser-made request needs no Origin: no browser adds it by itself', async (t) => {
  const { knock } = await openDoor(t)
  const headers = { origin: 'http://tool.example' }
  const answer = await knock('/workspaces', { method: 'POST', body: '{"name":"x"}', headers, token: secretOf('admin') })
  assert.equal(answer.status, 201)
})

test('PL-8 tasks are seen by their principal, the workspace itself and people; for others they do not exist', async (t) => {
  const { rpc: call, desk } = await openDoor(t)
  const sibling = await desk.workspaces.create({ name: 'sibling' })
  const { secret: peer } = await desk.tokens.create({ name: 'peer', role: 'workspace', workspaceId: sibling.id })
  const program = await desk.tokens.create({ name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID] })
  const { json } = await call('SendMessage', say('hello'), { token: program.secret })
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
  const body = JSON.stringify({ code: opened.desk.tokens.issueLoginCode() })
  const { headers } = await opened.knock('/login', { method: 'POST', body })
  return { ...opened, cookie: String(headers['set-cookie']?.[0]).split(';')[0] ?? '' }
}
