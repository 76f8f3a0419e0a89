import assert from 'node:assert/strict'
import test from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { type OpenDoor, openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'

const admin = { token: secretOf('admin') }
const create = ({ sendRequest }: OpenDoor, input: unknown) =>
  sendRequest('/tokens', { ...admin, method: 'POST', body: JSON.stringify(input) })

test('PL-12 a token is created, used, rotated and revoked over HTTP', async (t) => {
  const opened = await openDoor(t)
  const made = await create(opened, { name: 'ci', role: 'caller', workspaces: [WORKSPACE_ID], expires_in: '720h' })
  assert.equal(made.status, 201)
  assert.deepEqual(Object.keys(made.json), ['id', 'token'])
  assert.equal(made.headers['cache-control'], 'no-store')
  const { id, token } = made.json
  assert.ok((await opened.rpc('SendMessage', sendParams('hello'), { token })).json.result)
  const listed = await opened.sendRequest('/tokens', admin)
  assert.ok(listed.json.tokens.some((one: { id: string }) => one.id === id))
  assert.ok(!listed.text.includes(token))
  const rotated = await opened.sendRequest(`/tokens/${id}/rotate`, {
    ...admin,
    method: 'POST',
    body: '{"overlap":"5m"}',
  })
  assert.equal(rotated.json.id, id)
  assert.ok((await opened.rpc('SendMessage', sendParams('hello'), { token: rotated.json.token })).json.result)
  assert.equal((await opened.sendRequest(`/tokens/${id}`, { ...admin, method: 'DELETE' })).status, 204)
  assert.equal((await opened.rpc('SendMessage', sendParams('hello'), { token: rotated.json.token })).status, 401)
  assert.equal((await opened.sendRequest(`/tokens/${id}`, { ...admin, method: 'DELETE' })).status, 404)
})

test('PL-12 an invalid token is refused with the name of the field', async (t) => {
  const opened = await openDoor(t)
  const wrong: readonly [string, unknown][] = [
    ['name', { role: 'member' }],
    ['name', { name: ' ', role: 'member' }],
    ['role', { name: 'x' }],
    ['role', { name: 'x', role: 'owner' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '30 days' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '-5m' }],
    ['expires_in', { name: 'x', role: 'member', expires_in: '1000000h' }],
    ['workspace_id', { name: 'x', role: 'workspace', workspace_id: 'ws_nobody' }],
    ['workspaces', { name: 'x', role: 'caller', workspaces: [WORKSPACE_ID, 'ws_nobody'] }],
    ['workspaces', { name: 'x', role: 'caller', workspaces: [] }],
    ['scope', { name: 'x', role: 'member', scope: 'all' }],
  ]
  for (const [field, input] of wrong) {
    const { status, json } = await create(opened, input)
    assert.equal(status, 400, JSON.stringify(input))
    assert.ok(json.error.message.includes(`"${field}"`), json.error.message)
  }
  const overlap = { ...admin, method: 'POST', body: '{"overlap":"300h"}' }
  assert.equal((await opened.sendRequest('/tokens/member/rotate', overlap)).status, 400)
})

test('PL-12 revoking a token ends its waiting calls with that reason', async (t) => {
  const opened = await openDoor(t)
  const { json } = await create(opened, { name: 'gone', role: 'member' })
  const waiting = opened.rpc('SendMessage', sendParams('slow'), { token: json.token })
  await waitUntil(() => opened.fakePlatform.waiting() === 1, 'the call waits')
  await opened.sendRequest(`/tokens/${json.id}`, { ...admin, method: 'DELETE' })
  const answer = await waiting
  assert.equal(answer.status, 401)
  assert.match(answer.json.error.message, /revoked while its call waited/)
  assert.doesNotMatch(answer.text, /"task"/)
})
