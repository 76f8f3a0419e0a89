import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { createFakeTokens } from '../../../../test/fakes/platform/fake-tokens.ts'
import { type DoorRequest, openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { actionsOf, requireAccess } from '../../../api/who-may.ts'
import type { MoleculeError } from '../../../errors.ts'
import type { Identity, RefusedSecret, TokenRole } from '../../../workspaces/tokens.ts'
import { createAddresses } from './addresses.ts'
import { createHttpAuth, taskScope, taskViewsOf } from './auth.ts'
import { createWrongTokenLimit } from './wrong-token-limit.ts'

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

function setUp(refused?: RefusedSecret) {
  const tokens = createFakeTokens({ workspaceId: 'ws_1', secretOf: (role) => `${role}-secret` })
  const counted: [limit: string, key: string, amount?: number][] = []
  const limitOf = (limit: string) => ({
    count: (key: string, amount?: number) =>
      void counted.push(amount === undefined ? [limit, key] : [limit, key, amount]),
  })
  const auth = createHttpAuth({
    tokens: { ...tokens, whyRefused: async () => refused },
    port: 8080,
    addresses: createAddresses({ host: '127.0.0.1' }),
    rateLimit: limitOf('requests'),
    byteLimit: limitOf('bytes'),
    wrongTokenLimit: createWrongTokenLimit(manualClock()),
  })
  return { auth, counted }
}

const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } })
const identityOf = (role: TokenRole, fields: Partial<Identity> = {}) =>
  ({ role, name: `the ${role}`, principal: `p:${role}`, ...fields }) as Identity

test('PL-9 each request and its bytes count against its token, except those of an admin', async () => {
  const { auth, counted } = setUp()
  const member = await auth.identify(bearer('member-secret'))
  auth.countBytes(member, 12)
  const admin = await auth.identify(bearer('admin-secret'))
  auth.countBytes(admin, 34)
  await auth.identify(bearer('viewer-secret'), { counted: false })
  await auth.identify(bearer('viewer-secret'), { counted: true })
  assert.deepEqual(counted, [
    ['requests', 'member'],
    ['bytes', 'member', 12],
    ['requests', 'viewer'],
  ])
})

test('PL-12 the secret is that of the header, else that of the cookie of this port', async () => {
  const { auth } = setUp()
  assert.equal(auth.cookieName, 'molecule_session_8080')
  const named = async (cookie: string, method = 'GET') =>
    (await auth.identify({ method, headers: { cookie } }).catch(({ message }: Error) => ({ name: message }))).name
  const own = 'molecule_session_8080=admin-secret'
  for (const cookie of [own, `a=b; ${own}`, `${own}; a=b`, `a; =x; ${own} `, ` molecule_session_8080 = admin-secret`])
    assert.equal(await named(cookie), 'admin', cookie)
  for (const cookie of [
    ...['', 'molecule_session_8080', 'molecule_session_8080=', 'a=admin-secret', '=admin-secret', '=; x'],
    ...[
      'molecule_session_80801=admin-secret',
      'xmolecule_session_8080=admin-secret',
      'molecule_session_8080:admin-secret',
    ],
  ])
    assert.equal(await named(cookie), 'this request needs a token', cookie)
  assert.equal(await named('molecule_session_8080=a=b'), 'this token is not known here')
  assert.equal(await named(own, 'POST'), 'a browser may send changes only from a page of this platform')
  await assert.rejects(auth.identify({ headers: {} }), {
    code: 'unauthenticated',
    message: 'this request needs a token',
  })
  const oneLetter = createHttpAuth({ ...setUpOptions(), port: 1 })
  assert.equal(oneLetter.loginSecret({ headers: { cookie: 'molecule_session_1=s' } }), 's')
})

function setUpOptions() {
  const tokens = createFakeTokens({ workspaceId: 'ws_1', secretOf: (role) => role })
  const limit = { count: () => undefined }
  const addresses = createAddresses({ host: '127.0.0.1' })
  const wrongTokenLimit = createWrongTokenLimit(manualClock())
  return { tokens, addresses, rateLimit: limit, byteLimit: limit, wrongTokenLimit }
}

test('PL-12 a header that is no bearer token is refused with its form', async () => {
  const { auth } = setUp()
  assert.equal((await auth.identify({ headers: { authorization: 'bearer   admin-secret  ' } })).name, 'admin')
  for (const authorization of ['', 'Bearer', 'Basic admin-secret', 'Bearer a b', 'admin-secret'])
    await assert.rejects(auth.identify({ headers: { authorization } }), {
      code: 'unauthenticated',
      message: 'the Authorization header must be "Bearer <token>"',
    })
})

test('PL-12 a refused secret says why: unknown, expired or rotated, and since when', async () => {
  const reason = async (refused?: RefusedSecret) =>
    await setUp(refused)
      .auth.identify(bearer('x'))
      .catch(({ code, message }) => [code, message])
  assert.deepEqual(await reason(), ['unauthenticated', 'this token is not known here'])
  assert.deepEqual(await reason({ reason: 'expired', sinceMs: 61_999 }), [
    'unauthenticated',
    'this token expired 1m1s ago; an admin can make a new one',
  ])
  assert.deepEqual(await reason({ reason: 'replaced', sinceMs: 2000 }), [
    'unauthenticated',
    'this secret was replaced by a rotation and ended 2s ago; use the new secret of the token',
  ])
})

test('PL-9 wrong tokens are limited by address; requests without an address share one limit', async () => {
  const { auth } = setUp()
  const wrong = (remoteAddress?: string) =>
    auth.identify({ ...bearer('x'), ...(remoteAddress !== undefined && { socket: { remoteAddress } }) })
  for (let tries = 0; tries < 60; tries++) await assert.rejects(wrong('10.0.0.1'), { code: 'unauthenticated' })
  await assert.rejects(wrong('10.0.0.1'), {
    code: 'too_many_requests',
    message: 'your address sent more than 60 wrong tokens within a minute',
  })
  await assert.rejects(wrong('10.0.0.2'), { code: 'unauthenticated' })
  await assert.rejects(wrong(), { code: 'unauthenticated' })
  assert.equal(
    (await auth.identify({ ...bearer('admin-secret'), socket: { remoteAddress: '10.0.0.1' } })).role,
    'admin',
  )
})

test('PL-12 a role that is not listed may not do an action, and the refusal names both', () => {
  requireAccess(identityOf('member'), 'message.send')
  assert.throws(() => requireAccess(identityOf('viewer'), 'message.send'), {
    code: 'forbidden',
    message:
      'the token "the viewer" has the role viewer; message.send needs admin or member or caller or workspace or conversation',
    details: { action: 'message.send', role: 'viewer' },
  })
  assert.deepEqual(actionsOf('caller'), [
    'platform.read',
    'workspace.read',
    'message.send',
    'task.read',
    'task.cancel',
    'task.push',
  ])
})

test('PL-12 a change by cookie needs the Origin of the platform; a read does not', () => {
  const { requireSameOrigin } = setUp().auth
  const host = 'Localhost:8080'
  for (const method of ['GET', 'HEAD']) requireSameOrigin({ method, headers: { host } })
  requireSameOrigin({ method: 'POST', headers: { host, origin: 'http://localhost:8080' } })
  for (const origin of [undefined, 'null', 'http://localhost', 'http://evil.test', 'file:///x', 'text'])
    assert.throws(
      () => requireSameOrigin({ method: 'POST', headers: { host, ...(origin && { origin }) } }),
      ({ code, message, details }: MoleculeError) => {
        assert.equal(code, 'forbidden')
        assert.equal(message, 'a browser may send changes only from a page of this platform')
        return details['origin'] === (origin ?? null) && String(details['hint']).includes('--public-url')
      },
      origin,
    )
})

test('PL-12 a socket may be opened without an Origin, or from a page of the platform', () => {
  const { requireOwnPage } = setUp().auth
  const host = 'localhost:8080'
  requireOwnPage({ headers: { host } })
  requireOwnPage({ headers: { host, origin: 'http://localhost:8080' } })
  for (const origin of ['null', 'http://evil.test', 'http://localhost:8081'])
    assert.throws(() => requireOwnPage({ headers: { host, origin } }), {
      code: 'forbidden',
      message: 'a browser may open a socket only from a page of this platform',
    })
})

test('PL-8 people see all tasks, owners with the details of failures; a workspace its own; others what they sent', () => {
  const scope = (role: TokenRole, workspaceId?: string) =>
    taskScope(identityOf(role, { ...(workspaceId && { workspaceId }) }), 'ws_1')
  assert.deepEqual(
    [scope('admin'), scope('member'), scope('viewer'), scope('caller')],
    [{ detail: true }, { detail: true }, {}, { principal: 'p:caller' }],
  )
  assert.deepEqual(
    [scope('workspace', 'ws_1'), scope('workspace', 'ws_2'), scope('conversation', 'ws_1')],
    [{}, { principal: 'p:workspace' }, { principal: 'p:conversation' }],
  )
})

test('PL-8 a workspace sees a task as its sender and as its receiver, other callers in one way', () => {
  assert.deepEqual(taskViewsOf(identityOf('admin')), [{ detail: true }])
  assert.deepEqual(taskViewsOf(identityOf('caller')), [{ principal: 'p:caller' }])
  assert.deepEqual(taskViewsOf(identityOf('workspace', { workspaceId: 'ws_1' })), [
    { principal: 'p:workspace' },
    { workspaceId: 'ws_1' },
  ])
  assert.deepEqual(taskViewsOf(identityOf('conversation', { workspaceId: 'ws_1' })), [{ principal: 'p:conversation' }])
})
