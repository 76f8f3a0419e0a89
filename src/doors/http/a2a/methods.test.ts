import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a, soon } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams, sendParamsV03 } from '../../../../test/harness/open-door.ts'
import { present } from '../../../../test/harness/present.ts'
import type { TaskQuery, TaskView } from '../../../inbox/reception.ts'
import type { Task } from '../../../protocol/a2a.ts'
import { A2A_ACTIONS, CAPABILITIES } from './methods.ts'

const NOW = { configuration: { returnImmediately: true } }

/** A door that notes how the reception is asked. */
function openNoting() {
  const views: [what: string, id: string, view: TaskView | undefined][] = []
  const queries: TaskQuery[] = []
  const door = openA2a(({ reception }) => ({
    reception: {
      ...reception,
      task(id, view) {
        views.push(['task', id, view])
        return reception.task(id, view)
      },
      snapshot(id, view) {
        views.push(['snapshot', id, view])
        return reception.snapshot(id, view)
      },
      cancel(id, view) {
        views.push(['cancel', id, view])
        return reception.cancel(id, view)
      },
      list(query) {
        queries.push(query)
        return reception.list(query)
      },
    },
  }))
  return { ...door, views, queries }
}

test('PL-12 each method has its action, and the card promises what is served', () => {
  assert.deepEqual(Object.fromEntries(A2A_ACTIONS), {
    SendMessage: 'message.send',
    SendStreamingMessage: 'message.send',
    GetTask: 'task.read',
    ListTasks: 'task.read',
    CancelTask: 'task.cancel',
    SubscribeToTask: 'task.read',
    CreateTaskPushNotificationConfig: 'task.push',
    GetTaskPushNotificationConfig: 'task.push',
    ListTaskPushNotificationConfigs: 'task.push',
    DeleteTaskPushNotificationConfig: 'task.push',
    GetExtendedAgentCard: 'workspace.read',
  })
  assert.deepEqual(CAPABILITIES, { streaming: true, pushNotifications: true, extendedAgentCard: true })
})

test('PL-8 each caller asks for a task in its own view; a workspace cancels only what it sent', async () => {
  const { rpc, views } = openNoting()
  await rpc('SendMessage', sendParams('slow', NOW))
  views.length = 0
  const asked = async (method: string, params: object, token: string) => {
    await rpc(method, params, { token: `${token}-secret` })
    return views.splice(0).at(0)
  }
  const id = 'task-1'
  const workspaceId = WORKSPACE_ID
  const own = `ws:${WORKSPACE_ID}`
  assert.deepEqual(await asked('GetTask', { id }, 'admin'), ['task', id, { workspaceId, detail: true }])
  assert.deepEqual(await asked('GetTask', { id }, 'viewer'), ['task', id, { workspaceId }])
  assert.deepEqual(await asked('GetTask', { id, historyLength: 2 }, 'workspace'), [
    'task',
    id,
    { workspaceId, historyLength: 2 },
  ])
  assert.deepEqual(await asked('GetTask', { id }, 'caller'), ['task', id, { workspaceId, principal: 'token:caller' }])
  assert.deepEqual(await asked('CancelTask', { id }, 'workspace'), ['cancel', id, { workspaceId, principal: own }])
  assert.deepEqual(await asked('CancelTask', { id }, 'member'), ['cancel', id, { workspaceId, detail: true }])
  assert.deepEqual(await asked('SubscribeToTask', { id: 'x' }, 'workspace'), ['snapshot', 'x', { workspaceId }])
})

test('PL-5 a wrong task id is refused with the name of the field, for every method that has one', async () => {
  const { rpc } = openNoting()
  for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
    const { text } = await rpc(method, { id: 7 })
    assert.match(text, /"(?:message|description)":"params\.id/, method)
  }
})

test('PL-5 a list asks for what its params say, and an unknown workspace is not an empty list', async () => {
  const { rpc, queries } = openNoting()
  await rpc('ListTasks', undefined)
  await rpc('ListTasks', {
    contextId: 'c',
    status: 'TASK_STATE_WORKING',
    historyLength: 3,
    pageSize: 9,
    includeArtifacts: true,
    statusTimestampAfter: '2026-01-01T00:00:00Z',
    pageToken: Buffer.from('12.task-1').toString('base64url'),
  })
  const basic = { workspaceId: WORKSPACE_ID, detail: true }
  assert.deepEqual(present(queries), [
    { ...basic, limit: 50, artifacts: false },
    {
      ...basic,
      limit: 9,
      artifacts: true,
      contextId: 'c',
      state: 'TASK_STATE_WORKING',
      historyLength: 3,
      changedSinceMs: Date.UTC(2026, 0, 1),
      after: { updatedAtMs: 12, id: 'task-1' },
    },
  ])
  const unknown = await rpc('ListTasks', {}, { workspace: 'ws_00000000000000000000000000' })
  assert.equal(unknown.json.error.data[0].reason, 'WORKSPACE_NOT_FOUND')
  for (const pageToken of ['x', Buffer.from('12').toString('base64url'), Buffer.from('x.y').toString('base64url')])
    assert.match(
      (await rpc('ListTasks', { pageToken })).json.error.message,
      /^params\.pageToken is not one of this server/,
    )
  assert.match((await rpc('ListTasks', { pageSize: 0 })).json.error.message, /^params\.pageSize/)
})

test('PL-5 the page of a list has a token for the next page, and none on the last', async () => {
  const { rpc } = openNoting()
  for (const text of ['one', 'two']) await rpc('SendMessage', sendParams(text))
  const first = (await rpc('ListTasks', { pageSize: 1 })).json.result
  assert.deepEqual([first.tasks.length, first.pageSize, first.totalSize], [1, 1, 2])
  assert.equal(Buffer.from(first.nextPageToken, 'base64url').toString(), '0.task-2')
  const pageToken = first.nextPageToken
  assert.equal((await rpc('ListTasks', { pageSize: 1, pageToken })).json.result.nextPageToken, '')
})

test('PL-23 other callers run between the reading and the writing of a list', async () => {
  let turns = 0
  let atRead = -1
  const { begin } = openA2a(({ reception }) => ({
    reception: {
      ...reception,
      list(query) {
        atRead = turns
        return reception.list(query)
      },
    },
  }))
  const { request, answered } = begin()
  const count = () => {
    turns++
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ListTasks' }))
  await answered
  clearImmediate(timer)
  assert.deepEqual([atRead, turns], [0, 1])
})

test('BK-2 a result that its reader has received is marked as read, for the token of a conversation', async () => {
  const { rpc, fakePlatform } = openA2a()
  const token = 'conversation-secret'
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  const to = { token, workspace: sibling.id }
  await rpc('SendMessage', sendParams('now', NOW), to)
  assert.deepEqual(fakePlatform.readResults, [], 'an answer at once shows only the id')
  const read = () => fakePlatform.readResults.map(([taskId]) => taskId)
  await rpc('GetTask', { id: 'task-1' }, to)
  assert.deepEqual(read(), ['task-1'])
  await rpc('SendMessage', sendParams('hello'), to)
  assert.deepEqual(read(), ['task-1', 'task-2'])
  await rpc('SendStreamingMessage', sendParams('stream'), to)
  assert.deepEqual(read(), ['task-1', 'task-2', 'task-3'])
  await rpc('SendStreamingMessage', sendParams('other'))
  assert.deepEqual(read(), ['task-1', 'task-2', 'task-3'], 'people have no list of unread results')
})

test('a caller that has gone has not read its result', async () => {
  const { begin, fakePlatform } = openA2a()
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  for (const method of ['SendMessage', 'SendStreamingMessage']) {
    const { request, client, answered } = begin({ token: 'conversation-secret', workspace: sibling.id })
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: sendParams('slow') }))
    await soon(() => fakePlatform.waiting() + fakePlatform.following() > 0)
    client.destroy()
    await answered
  }
  assert.deepEqual(fakePlatform.readResults, [])
})

test('RT-7 an owner sees the detail of a failure, other callers do not', async () => {
  const status = (detail: boolean) => ({
    state: 'TASK_STATE_FAILED' as const,
    message: {
      messageId: 'm',
      role: 'ROLE_AGENT' as const,
      parts: [{ text: detail ? 'with detail' : 'failed' }],
      metadata: { error_id: 'e-1' },
    },
  })
  const open = (failed: boolean) =>
    openA2a(({ reception }) => {
      const finish = (task: Task | undefined, detail: boolean) => {
        if (task === undefined || !failed) return task
        return { ...task, status: status(detail) }
      }
      return {
        reception: {
          ...reception,
          send: async (...given) => finish(await reception.send(...given), false) as Task,
          task: async (id, view) => {
            const task = await reception.task(id, view)
            return finish(task && { ...task, metadata: { readAgain: true } }, view?.detail === true)
          },
        },
      }
    })
  const textOf = async (token: string) =>
    (await open(true).rpc('SendMessage', sendParams('hello'), { token })).json.result.task.status.message.parts[0].text
  assert.deepEqual(
    [await textOf('admin-secret'), await textOf('member-secret'), await textOf('caller-secret')],
    ['with detail', 'with detail', 'failed'],
  )
  const done = await open(false).rpc('SendMessage', sendParams('hello'))
  assert.equal(done.json.result.task.metadata, undefined, 'a task that did not fail is not read again')
})

test('PL-5 historyLength is all when unset, none for 0, else the last messages, also in a stream', async () => {
  const { rpc, views } = openNoting()
  const lengthFor = async (historyLength?: number) => {
    const configuration = historyLength === undefined ? {} : { historyLength }
    const { history } = (await rpc('SendMessage', sendParams('hello', { configuration }))).json.result.task
    return history?.map(({ messageId }: { messageId: string }) => messageId)
  }
  assert.deepEqual(
    [await lengthFor(), await lengthFor(0), await lengthFor(1), await lengthFor(2)],
    [['m-hello', 'm-hello-later'], undefined, ['m-hello-later'], ['m-hello', 'm-hello-later']],
  )
  views.length = 0
  await rpc('SendStreamingMessage', sendParams('hello', { configuration: { historyLength: 1 } }))
  await rpc('SendStreamingMessage', sendParams('hello'))
  assert.deepEqual(
    views.filter(([what]) => what === 'snapshot').map(([, , view]) => view),
    [
      { workspaceId: WORKSPACE_ID, detail: true, historyLength: 1 },
      { workspaceId: WORKSPACE_ID, detail: true },
    ],
  )
})

test('PL-15 a letter has the trace, the key and the turn that delegates', async () => {
  const { rpc, fakePlatform } = openA2a()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await rpc('SendMessage', sendParams('hello'), {
    headers: { traceparent, tracestate: 'congo=t61', 'idempotency-key': 'k'.repeat(256) },
  })
  const [letter] = fakePlatform.letters
  assert.deepEqual(
    [letter?.envelope.trace, letter?.idempotencyKey, letter?.id, letter?.parent],
    [{ traceparent, tracestate: 'congo=t61' }, 'k'.repeat(256), '01', undefined],
  )
  const long = await rpc('SendMessage', sendParams('x'), { headers: { 'idempotency-key': 'k'.repeat(257) } })
  assert.equal(long.json.error.message, 'the Idempotency-Key header is longer than 256 characters')
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  await rpc('SendMessage', sendParams('x'), { token: 'conversation-secret', workspace: sibling.id })
  await rpc('SendMessage', sendParams('y'), { token: 'workspace-secret', workspace: sibling.id })
  assert.deepEqual(
    fakePlatform.letters.slice(1).map(({ parent, idempotencyKey }) => [parent, idempotencyKey]),
    [
      [{ workspaceId: WORKSPACE_ID, conversationId: 'conversation-1' }, undefined],
      [undefined, undefined],
    ],
  )
})

test('PL-9 a token over its number of streams is refused before its message is admitted', async () => {
  const { rpc, begin, fakePlatform } = openA2a()
  const body = (text: string) =>
    JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: sendParams(text) })
  const clients = Array.from({ length: 256 }, () => {
    const { request, client, answered } = begin({ token: 'member-secret' })
    request.end(body('slow'))
    return { client, answered }
  })
  await soon(() => fakePlatform.following() === 256)
  const refused = await rpc('SendStreamingMessage', sendParams('one more'), { token: 'member-secret' })
  assert.deepEqual([refused.status, refused.headers['Retry-After'], fakePlatform.letters.length], [429, '10', 256])
  for (const { client } of clients) client.destroy()
  await Promise.all(clients.map(({ answered }) => answered))
})

test('PL-5 a stream of a send ends when its task waits for input, a subscription goes on', async () => {
  const { rpc, begin, fakePlatform } = openA2a()
  const sent = await rpc('SendStreamingMessage', sendParams('ask'))
  assert.match(sent.text, /TASK_STATE_INPUT_REQUIRED/)
  const { request, client, answered } = begin()
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SubscribeToTask', params: { id: 'task-1' } }))
  await soon(() => fakePlatform.following() > 0)
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(client.writableEnded, false)
  fakePlatform.finish('task-1')
  await answered
  assert.match(client.text, /TASK_STATE_COMPLETED/)
})

test('PL-5 the extended card has the gRPC address where there is one', async () => {
  const { rpc } = openA2a(() => ({ grpcPort: () => 5000 }))
  const bindings = (json: { result: { supportedInterfaces: { protocolBinding: string }[] } }) =>
    json.result.supportedInterfaces.map(({ protocolBinding }) => protocolBinding)
  const all = ['JSONRPC', 'HTTP+JSON', 'GRPC', 'JSONRPC']
  assert.deepEqual(bindings((await rpc('GetExtendedAgentCard', {})).json), all)
  const older = (await rpc('agent/getAuthenticatedExtendedCard', {})).json
  assert.deepEqual([bindings(older), older.result.protocolVersion], [all, '0.3.0'])
})

test('BK-2 a task is answered in the format of the version of its method', async () => {
  const { rpc } = openA2a()
  const stateOf = async (method: string, params: unknown) => {
    const { result } = (await rpc(method, params)).json
    return [result.kind ?? 'none', (result.task ?? result).status.state]
  }
  assert.deepEqual(await stateOf('SendMessage', sendParams('hello')), ['none', 'TASK_STATE_COMPLETED'])
  assert.deepEqual(await stateOf('message/send', sendParamsV03('hello')), ['task', 'completed'])
  assert.deepEqual(await stateOf('GetTask', { id: 'task-1' }), ['none', 'TASK_STATE_COMPLETED'])
  assert.deepEqual(await stateOf('tasks/get', { id: 'task-1' }), ['task', 'completed'])
  assert.deepEqual(await stateOf('message/send', sendParamsV03('slow', { blocking: false })), ['task', 'working'])
  assert.deepEqual(await stateOf('tasks/cancel', { id: 'task-2' }), ['task', 'canceled'])
  assert.deepEqual(await stateOf('CancelTask', { id: 'task-2' }), ['none', 'TASK_STATE_CANCELED'])
})
