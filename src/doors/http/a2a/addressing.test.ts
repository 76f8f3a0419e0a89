import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams } from '../../../../test/harness/open-door.ts'

const rpcBody = (method: string, params: object) => ({ jsonrpc: '2.0', id: 7, method, params })

test('PL-12 a caller reaches only the workspaces on its list, over JSON-RPC and over REST', async () => {
  const { send, fakePlatform } = openA2a()
  const other = await fakePlatform.workspaces.create({ name: 'other' })
  const to = (workspace: string) => ({ token: 'caller-secret', workspace })
  for (const [workspace, status] of [
    [WORKSPACE_ID, 200],
    ['echo', 200],
    [other.id, 403],
  ] as const) {
    const body = sendParams(`hello ${workspace}`)
    assert.equal((await send({ ...to(workspace), body: rpcBody('SendMessage', body) })).status, status, workspace)
    assert.equal((await send({ ...to(workspace), path: '/message:send', body })).status, status, workspace)
  }
  const hidden = await send({ ...to('other'), path: '/message:send', body: sendParams('x') })
  assert.deepEqual([hidden.status, hidden.json.error.message], [404, 'there is no workspace other'])
  assert.ok(fakePlatform.letters.every(({ workspaceId }) => workspaceId === WORKSPACE_ID))
})

test('PL-5 Last-Event-ID resumes a stream after that event, over JSON-RPC and over REST', async () => {
  const { send } = openA2a()
  await send({ body: rpcBody('SendMessage', sendParams('hello')) })
  const headers = { 'last-event-id': '2.1' }
  const fromRpc = await send({ headers, body: rpcBody('SubscribeToTask', { id: 'task-1' }) })
  const fromRest = await send({ headers, method: 'GET', path: '/tasks/task-1:subscribe' })
  for (const { text } of [fromRpc, fromRest]) assert.match(text, /^id: 2\.2\n[^\n]*statusUpdate[^\n]*\n\n$/)
})

test('PL-5 a stream that is refused is plain JSON in 1.0, and one event without an id in 0.3', async () => {
  const { send } = openA2a()
  const refused = await send({ body: rpcBody('SubscribeToTask', { id: 'nope' }) })
  assert.deepEqual([refused.status, refused.headers['Content-Type']], [200, 'application/json'])
  assert.match(refused.text, /^\{"jsonrpc":"2\.0","id":7,"error"/)
  const refused03 = await send({ body: rpcBody('tasks/resubscribe', { id: 'nope' }) })
  assert.deepEqual([refused03.status, refused03.headers['Content-Type']], [200, 'text/event-stream'])
  assert.match(refused03.text, /^data: \{"jsonrpc":"2\.0","id":7,"error"/)
})
