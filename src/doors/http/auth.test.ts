import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../test/fakes/desk.ts'
import { type Knock, openDoor, say } from '../../../test/fakes/open-door.ts'

interface Route {
  readonly name: string
  readonly path: string
  readonly method: string
  readonly body?: string
  /** Roles that may; everybody else with a token is 403, without one 401. */
  readonly roles: readonly string[]
}

const ROLES = ['admin', 'member', 'viewer', 'caller', 'workspace', 'conversation'] as const

const rpc = (method: string, params: object, roles: readonly string[]): Route => ({
  name: method,
  path: `/workspaces/${WORKSPACE_ID}/a2a`,
  method: 'POST',
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  roles,
})

const ROUTES: readonly Route[] = [
  { name: 'create', path: '/workspaces', method: 'POST', body: '{"name":"new"}', roles: ['admin'] },
  { name: 'list', path: '/workspaces', method: 'GET', roles: ['admin', 'member', 'viewer'] },
  { name: 'inspect', path: `/workspaces/${WORKSPACE_ID}`, method: 'GET', roles: ['admin', 'member', 'viewer'] },
  rpc('SendMessage', say('hello'), ['admin', 'member']),
  rpc('message/send', { message: { messageId: 'm', role: 'user', parts: [{ text: 'x' }] } }, ['admin', 'member']),
  rpc('GetTask', { id: 'task-1' }, ['admin', 'member', 'viewer']),
  rpc('tasks/get', { id: 'task-1' }, ['admin', 'member', 'viewer']),
  rpc('CancelTask', { id: 'task-2' }, ['admin', 'member']),
  rpc('tasks/cancel', { id: 'task-2' }, ['admin', 'member']),
]

test('every route and method x every role: only those named may, on loopback too', async (t) => {
  const { knock, rpc: call } = await openDoor(t)
  await call('SendMessage', say('first'))
  await call('SendMessage', say('slow', { configuration: { returnImmediately: true } }))
  for (const { name, path, roles, ...request } of ROUTES) {
    for (const token of [undefined, 'wrong-secret', 'Admin-secret', `${secretOf('admin')}x`]) {
      const { status, headers } = await knock(path, { ...request, token })
      assert.equal(status, 401, `${name} by ${token}`)
      assert.match(String(headers['www-authenticate']), /^Bearer /)
    }
    for (const role of ROLES) {
      const { status, json } = await knock(path, { ...request, token: secretOf(role) })
      if (!roles.includes(role)) assert.equal(status, 403, `${name} by ${role}`)
      else assert.ok(status < 300 && !json.error, `${name} by ${role}: ${status} ${JSON.stringify(json)}`)
    }
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

test('a member sees the tasks of its principal, admin and viewer see all', async (t) => {
  const { rpc: call, desk } = await openDoor(t)
  const { taskId } = await desk.reception.admit({
    workspaceId: WORKSPACE_ID,
    principal: 'token:program',
    sender: { kind: 'program', id: 'p', name: 'p', door: 'http' },
    envelope: {
      version: '1.0',
      method: 'SendMessage',
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] },
      raw: {},
    },
  })
  const seen = async (role: 'admin' | 'member' | 'viewer') =>
    (await call('GetTask', { id: taskId }, { token: secretOf(role) })).json.error?.code
  assert.equal(await seen('admin'), undefined)
  assert.equal(await seen('viewer'), undefined)
  assert.equal(await seen('member'), -32001)
})

async function loggedIn(t: Parameters<typeof openDoor>[0]) {
  const opened = await openDoor(t)
  const body = JSON.stringify({ code: opened.desk.tokens.issueLoginCode() })
  const { headers } = await opened.knock('/login', { method: 'POST', body })
  return { ...opened, cookie: String(headers['set-cookie']?.[0]).split(';')[0] ?? '' }
}
