import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFakePushContext, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openA2a, soon } from '../../../../test/harness/clients/a2a-in-memory.ts'
import { sendParams } from '../../../../test/harness/open-door.ts'
import type { TaskQuery } from '../../../inbox/reception.ts'

/** A door with one finished task, that notes the calls of its push configs and the queries of its list. */
async function openNoting() {
  const notes: unknown[] = []
  const queries: TaskQuery[] = []
  const door = openA2a(({ reception }) => {
    const push = createFakePushContext()
    return {
      reception: {
        ...reception,
        list(query) {
          queries.push(query)
          return reception.list(query)
        },
      },
      push: {
        ...push,
        configs: {
          ...push.configs,
          async remove(name) {
            notes.push(name)
            return true
          },
        },
      },
    }
  })
  await door.rpc('SendMessage', sendParams('hello'))
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await door.send({ method, path, ...(body !== undefined && { body }) })
    return [answer.status, answer.json]
  }
  return { ...door, call, notes, queries }
}

test('PL-5 the REST routes of push configs set, list, show and delete them', async () => {
  const { call, notes } = await openNoting()
  const path = '/tasks/task-1/pushNotificationConfigs'
  const shown = { id: 'hook', taskId: 'task-1', url: 'https://hook.test/' }
  for (const tenant of ['', '/acme']) {
    const [status, set] = await call('POST', tenant + path, { url: 'https://a.test/', id: 'mine' })
    assert.deepEqual([status, set.id, set.taskId, set.url], [200, 'mine', 'task-1', 'https://a.test/'])
    assert.deepEqual(await call('GET', tenant + path), [200, { configs: [shown], nextPageToken: '' }])
    assert.deepEqual(await call('GET', `${tenant + path}/hook`), [200, shown])
    assert.deepEqual(await call('DELETE', `${tenant + path}/my%20hook`), [200, {}])
  }
  assert.deepEqual(notes, [
    { workspaceId: WORKSPACE_ID, taskId: 'task-1', id: 'my hook' },
    { workspaceId: WORKSPACE_ID, taskId: 'task-1', id: 'my hook' },
  ])
})

test('PL-5 a REST route is its method and its whole path; anything else is not found', async () => {
  const { call } = await openNoting()
  const wrong = [
    ...['GET /message:send', 'GET /message:stream', 'POST /tasks', 'DELETE /tasks/task-1', 'GET /tasks/task-1:cancel'],
    ...['PUT /tasks', 'POST /extendedAgentCard', 'GET /a/b/tasks', 'GET /tasks/a/b', 'GET /x', 'GET /xtasks'],
    'DELETE /tasks/task-1/pushNotificationConfigs',
  ]
  for (const route of wrong) {
    const [method = '', path = ''] = route.split(' ')
    const [status, { error }] = await call(method, path)
    assert.deepEqual(
      [status, error.code, error.status, error.message, error.details[0].reason],
      [404, 404, 'NOT_FOUND', `A2A has no ${route}`, 'METHOD_NOT_FOUND'],
    )
  }
})

test('PL-5 the query of a list becomes numbers, flags and texts', async () => {
  const { call, queries } = await openNoting()
  await call('GET', '/tasks?pageSize=7&historyLength=2&includeArtifacts=true&contextId=12')
  await call('GET', '/tasks?page_size=8&includeArtifacts=false&contextId=true')
  assert.deepEqual(queries, [
    { workspaceId: WORKSPACE_ID, detail: true, limit: 7, historyLength: 2, artifacts: true, contextId: '12' },
    { workspaceId: WORKSPACE_ID, detail: true, limit: 8, artifacts: false, contextId: 'true' },
  ])
  const refused = ['includeArtifacts=yes', 'pageSize=x', 'pageSize=1e1', 'historyLength=-1', 'pageSize=']
  for (const query of refused) assert.equal((await call('GET', `/tasks?${query}`))[0], 400, query)
})

test('PL-5 a POST over REST reads its params from query and body, and needs no body', async () => {
  const { call, rpc, send } = await openNoting()
  const running = sendParams('slow', { message: { messageId: 's' }, configuration: { returnImmediately: true } })
  await rpc('SendMessage', running)
  const [status, canceled] = await call('POST', '/tasks/task-2:cancel')
  assert.deepEqual([status, canceled.status.state], [200, 'TASK_STATE_CANCELED'])
  assert.equal((await call('POST', '/tasks/task-2:cancel', '{}'))[0], 200)
  const one = await send({ path: '/message:send', body: '7' })
  assert.deepEqual([one.status, one.json.error.message], [400, 'the body must be a JSON object'])
  assert.equal(one.headers['Content-Type'], 'application/a2a+json')
  const snake = { message: { message_id: 'snake', role: 'ROLE_USER', parts: [{ text: 'hello' }] } }
  const [, sent] = await call('POST', '/message:send', snake)
  assert.equal(sent.task.status.state, 'TASK_STATE_COMPLETED')
})

test('PL-5 a version that REST does not serve is refused, and a failure has its headers and its log line', async () => {
  const { send, fakePlatform, countedBytes } = await openNoting()
  const old = await send({ method: 'GET', path: '/tasks', headers: { 'a2a-version': '0.3' } })
  assert.deepEqual([old.status, old.json.error.code], [400, 400])
  assert.equal((await send({ method: 'GET', path: '/tasks', headers: { 'a2a-version': '1.0' } })).status, 200)
  const full = await send({ path: '/message:send', body: sendParams('queue_full') })
  assert.deepEqual([full.status, full.headers['Retry-After']], [429, '2'])
  const line = fakePlatform.logged.at(-1)
  assert.deepEqual([line?.['msg'], line?.['code'], line?.['requestId']], ['request refused', 'queue_full', 'req_01'])
  assert.equal(countedBytes.length, 0, 'an admin is exempt')
  const body = JSON.stringify(sendParams('counted'))
  await send({ path: '/message:send', token: 'member-secret', body })
  assert.deepEqual(countedBytes, [['member', body.length]])
  assert.equal(fakePlatform.letters.at(-1)?.bytes, body.length)
})

test('PL-5 a stream over REST is its bare events, and a stream that failed after its head is only logged', async () => {
  const { send, options } = await openNoting()
  const stream = await send({ path: '/message:stream', body: sendParams('again') })
  assert.equal(stream.headers['Content-Type'], 'text/event-stream')
  assert.match(stream.text, /^id: \d+\.0\ndata: \{"task":/)
  const { reception } = options
  const failing = openA2a(() => ({
    reception: {
      ...reception,
      // biome-ignore lint/correctness/useYield: the log fails before its first row
      async *follow() {
        throw new Error('the log is gone')
      },
    },
  }))
  const { request, client, answered } = failing.begin({ path: '/message:stream' })
  request.end(JSON.stringify(sendParams('hello')))
  await answered
  assert.deepEqual([client.status, client.destroyed], [200, true])
  assert.doesNotMatch(client.text, /error/)
  assert.match(JSON.stringify(failing.fakePlatform.logged.at(-1)), /the log is gone/)
})

test('PL-5 over REST the media type of an answer is that of A2A, unless its caller accepts only plain JSON', async () => {
  const { send } = await openNoting()
  const typeFor = async (accept?: string) =>
    (await send({ method: 'GET', path: '/tasks', headers: accept === undefined ? {} : { accept } })).headers[
      'Content-Type'
    ]
  const accepted = [undefined, '*/*', 'application/a2a+json', 'application/json, application/a2a+json']
  for (const accept of accepted) assert.equal(await typeFor(accept), 'application/a2a+json', accept)
  assert.equal(await typeFor('application/json'), 'application/json')
})

test('PL-5 the REST routes of tasks read, follow and cancel them, and show the extended card', async () => {
  const { call, begin, fakePlatform } = await openNoting()
  const [, { task }] = await call(
    'POST',
    '/message:send',
    sendParams('slow', { configuration: { returnImmediately: true } }),
  )
  for (const tenant of ['', '/acme']) {
    const [status, found] = await call('GET', `${tenant}/tasks/${task.id}`)
    assert.deepEqual([status, found.id, found.status.state], [200, 'task-2', 'TASK_STATE_WORKING'])
    assert.equal((await call('GET', `${tenant}/extendedAgentCard`))[1].name, 'echo')
  }
  const followers = ['GET', 'POST'].map((method) => begin({ method, path: '/tasks/task-2:subscribe' }))
  for (const { request } of followers) request.end()
  await soon(() => fakePlatform.following() === 2)
  await call('POST', '/tasks/task-2:cancel')
  for (const { client, answered } of followers) {
    await answered
    assert.match(client.text, /^id: 4\.0\ndata: {"task":.*TASK_STATE_CANCELED/s)
  }
})

test('PL-5 a client of 0.3 finds the extended card at v1/card, in its format and with a token', async () => {
  const { send } = await openNoting()
  for (const version of [undefined, '0.3', '1.0']) {
    const headers = version === undefined ? {} : { 'a2a-version': version }
    const { status, json, headers: answered } = await send({ method: 'GET', path: '/v1/card', headers })
    assert.deepEqual([status, answered['Content-Type']], [200, 'application/json'])
    assert.deepEqual([json.name, json.protocolVersion, json.preferredTransport], ['echo', '0.3.0', 'JSONRPC'])
    assert.ok(json.capabilities.extensions.length > 0, 'the extended one')
  }
  assert.equal((await send({ method: 'GET', path: '/v1/card', token: 'wrong' })).status, 401)
  assert.equal((await send({ method: 'GET', path: '/v1/card', headers: { 'a2a-version': '2.0' } })).status, 400)
  assert.equal((await send({ method: 'POST', path: '/v1/card' })).status, 404)
})

test('PL-12 a stream over REST whose token is revoked ends, and nothing is written after it', async () => {
  const { begin, fakePlatform } = openA2a()
  const { id, secret: token } = await fakePlatform.tokens.create({ name: 'short', role: 'member' })
  const { request, client, answered } = begin({ path: '/message:stream', token })
  request.end(JSON.stringify(sendParams('slow')))
  await soon(() => fakePlatform.following() > 0)
  await fakePlatform.tokens.revoke(id)
  await answered
  assert.ok(client.writableEnded)
  assert.equal(fakePlatform.logged.at(-1)?.['code'], 'unauthenticated')
})

test('PL-23 other callers run between the steps of a large message over REST', async () => {
  for (const [bytes, expected] of [
    [256 * 1024, 0],
    [256 * 1024 + 1, 2],
  ] as const) {
    let turns = 0
    let atAdmission = -1
    const { begin } = openA2a(({ reception }) => ({
      reception: {
        ...reception,
        send(...given) {
          atAdmission = turns
          return reception.send(...given)
        },
      },
    }))
    const bodyOf = (pad: string) => JSON.stringify(sendParams('hello', { message: { metadata: { pad } } }))
    const { request, answered } = begin({ path: '/message:send' })
    const count = () => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    request.end(bodyOf('x'.repeat(bytes - bodyOf('').length)))
    await answered
    clearImmediate(timer)
    assert.equal(atAdmission, expected, String(bytes))
  }
})
