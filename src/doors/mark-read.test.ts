import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { secretOf } from '../../test/fakes/platform/fake-platform.ts'
import { openDoor, openStream, sendParams } from '../../test/harness/open-door.ts'
import { waitUntil } from '../../test/harness/wait.ts'

/** A caller with a token of this role, which sends to another workspace. */
async function setUp(t: TestContext, role: 'conversation' | 'workspace' | 'admin' = 'conversation') {
  const { sendRequest, url, fakePlatform } = await openDoor(t)
  const { id } = await fakePlatform.workspaces.create({ name: 'peer' })
  const path = `/workspaces/${id}/a2a`
  const token = secretOf(role)
  const call = (method: string, params: object) => ({
    ...{ method: 'POST', token },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  return {
    fakePlatform,
    rpc: (method: string, params: object) => sendRequest(path, call(method, params)),
    stream: (method: string, params: object) => openStream(url + path, call(method, params)),
    get: (from: string) => sendRequest(from, { token }),
    read: () => fakePlatform.readResults.map(([taskId]) => taskId),
  }
}

test('TW-3 a call that returns a task to the turn that delegated it marks its result as read', async (t) => {
  const { rpc, stream, get, read, fakePlatform } = await setUp(t)
  await rpc('SendMessage', sendParams('wait'))
  assert.deepEqual(fakePlatform.readResults, [['task-1', fakePlatform.letters[0]?.principal]])
  await rpc('SendMessage', sendParams('go on', { configuration: { returnImmediately: true } }))
  assert.deepEqual(read(), ['task-1'], 'an agent that does not wait sees only the id')
  await rpc('GetTask', { id: 'task-2' })
  await get('/tasks/task-2')
  assert.deepEqual(read(), ['task-1', 'task-2', 'task-2'])
  await (await stream('SendStreamingMessage', sendParams('stream'))).ended
  assert.equal(read().at(-1), 'task-3')
})

test('TW-3 a stream that the client breaks off marks nothing as read', async (t) => {
  const { stream, read, fakePlatform } = await setUp(t)
  const broken = await stream('SendStreamingMessage', sendParams('slow'))
  await waitUntil(() => fakePlatform.following() === 1)
  broken.leave()
  await waitUntil(() => fakePlatform.following() === 0)
  fakePlatform.finish('task-1')
  assert.deepEqual(read(), [])
})

test('TW-3 a caller that is no turn marks nothing as read', async (t) => {
  for (const role of ['workspace', 'admin'] as const) {
    const { rpc, get, read } = await setUp(t, role)
    await rpc('SendMessage', sendParams('wait'))
    await rpc('GetTask', { id: 'task-1' })
    assert.equal((await get('/tasks/task-1')).status, 200)
    assert.deepEqual(read(), [])
  }
})
