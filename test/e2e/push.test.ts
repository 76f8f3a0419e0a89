/** Webhooks: a real platform that calls a real receiver. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { AgentCard, TaskPushNotificationConfig } from '@a2a-js/sdk'
import { JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { JsonRpcTransport as OldTransport } from 'a2a-v03/client'
import { startRemoteAgent } from '../fakes/remote-agent/start.ts'
import { serve } from '../harness/loopback-server.ts'
import { startPlatform, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read requests of every shape
type Body = any

interface Receiver {
  readonly url: string
  readonly bodies: Body[]
  readonly headers: IncomingHttpHeaders[]
  /** Statuses for the next calls; 200 when there is none left. */
  readonly statuses: (number | 'silence')[]
}

async function receive(t: TestContext): Promise<Receiver> {
  const bodies: Body[] = []
  const headers: IncomingHttpHeaders[] = []
  const statuses: (number | 'silence')[] = []
  const { url } = await serve(t, (request, response) => {
    json(request).then((body) => {
      bodies.push(body)
      headers.push(request.headers)
      const status = statuses.shift() ?? 200
      if (status !== 'silence') response.writeHead(status).end()
    }, assert.fail)
  })
  return { url: `${url}/hook`, bodies, headers, statuses }
}

const LOOPBACK_ALLOWED = { args: ['--allow-outbound', '127.0.0.1/32'] }

const message = (text: string, more: object = {}) => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
})

/** The webhook calls in short: task states and the texts of artifacts. */
const summaries = (bodies: readonly Body[]): string[] =>
  bodies.map((body) => {
    if (body.statusUpdate !== undefined) return body.statusUpdate.status.state
    const update = body.artifactUpdate
    assert.equal(update.lastChunk, true)
    return update.artifact.parts.map((part: { text?: string }) => part.text ?? '').join('')
  })

test('a webhook given with a send receives every status and the complete reply, in order, with its credentials', async (t) => {
  const receiver = await receive(t)
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const id = await platform.exec('cat')
  const taskPushNotificationConfig = {
    url: receiver.url,
    token: 'the-token-of-the-caller',
    authentication: { scheme: 'Bearer', credentials: 'the-credentials-of-the-caller' },
  }
  const configuration = { taskPushNotificationConfig }
  const { body } = await platform.rpc(id, 'SendMessage', { message: message('hello'), configuration })
  const task = body.result.task
  await waitUntil(() => summaries(receiver.bodies).includes('TASK_STATE_COMPLETED'))
  assert.deepEqual(summaries(receiver.bodies).slice(-3), ['TASK_STATE_WORKING', 'hello', 'TASK_STATE_COMPLETED'])
  assert.equal(receiver.bodies.at(-1).statusUpdate.taskId, task.id)
  const [headers] = receiver.headers
  assert.equal(headers?.['content-type'], 'application/a2a+json')
  assert.equal(headers?.authorization, 'Bearer the-credentials-of-the-caller')
  assert.equal(headers?.['x-a2a-notification-token'], 'the-token-of-the-caller')

  const one = await platform.rpc(id, 'GetTaskPushNotificationConfig', { taskId: task.id, id: task.id })
  const shown = { taskId: task.id, id: task.id, url: receiver.url, authentication: { scheme: 'Bearer' } }
  assert.deepEqual(one.body.result, shown)
  const all = await platform.rpc(id, 'ListTaskPushNotificationConfigs', { taskId: task.id })
  assert.deepEqual(all.body.result, { configs: [shown], nextPageToken: '' })
  const log = await readFile(join(platform.dataDir, 'molecule.log'), 'utf8')
  const seen = await platform.rpc(id, 'GetTask', { id: task.id })
  for (const text of [log, platform.output(), JSON.stringify(seen.body)]) assert.ok(!text.includes('of-the-caller'))
})

test('0.3 callers set, get, list and delete webhooks, and receive calls, in 0.3 form', async (t) => {
  const receiver = await receive(t)
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const id = await platform.exec('read line; sleep 1; echo $line')
  const messageV03 = {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text: 'hello\n' }],
  }
  const sent = await platform.rpc(id, 'message/send', { message: messageV03, configuration: { blocking: false } })
  const taskId = sent.body.result.id
  const set = (more: object) =>
    platform.rpc(id, 'tasks/pushNotificationConfig/set', {
      taskId,
      pushNotificationConfig: { id: 'mine', url: receiver.url, token: 'secret', ...more },
    })
  const shown = { taskId, pushNotificationConfig: { id: 'mine', url: receiver.url } }
  assert.deepEqual((await set({})).body.result, shown)
  assert.equal((await set({ id: 'other' })).status, 200)
  const removed = { id: taskId, pushNotificationConfigId: 'other' }
  assert.equal((await platform.rpc(id, 'tasks/pushNotificationConfig/delete', removed)).body.result, null)
  assert.deepEqual((await platform.rpc(id, 'tasks/pushNotificationConfig/list', { id: taskId })).body.result, [shown])
  assert.deepEqual((await platform.rpc(id, 'tasks/pushNotificationConfig/get', { id: taskId })).body.result, shown)
  const gone = await platform.rpc(id, 'tasks/pushNotificationConfig/get', removed)
  assert.equal(gone.body.error.code, -32001)
  await waitUntil(() => receiver.bodies.some((task) => task.status.state === 'completed'))
  assert.deepEqual(
    receiver.bodies.map((task) => [task.kind, task.id, task.status.state, task.artifacts?.[0].parts]),
    ['working', 'completed'].map((state) => ['task', taskId, state, [{ kind: 'text', text: 'hello\n' }]]),
  )
  assert.equal(receiver.headers[0]?.['x-a2a-notification-token'], 'secret')
})

test('a failed webhook call is retried, and later calls wait for it', async (t) => {
  const receiver = await receive(t)
  receiver.statuses.push(200, 500)
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const id = await platform.exec('cat')
  const configuration = { taskPushNotificationConfig: { url: receiver.url } }
  await platform.rpc(id, 'SendMessage', { message: message('hello'), configuration })
  await waitUntil(() => summaries(receiver.bodies).includes('TASK_STATE_COMPLETED'))
  const all = summaries(receiver.bodies)
  // The second call failed once and was sent again before the rest.
  assert.equal(all[1], all[2])
  assert.deepEqual([all[0], ...all.slice(2)].slice(-3), ['TASK_STATE_WORKING', 'hello', 'TASK_STATE_COMPLETED'])
})

test('an artifact that arrives in chunks is sent complete', async (t) => {
  const receiver = await receive(t)
  const agent = await startRemoteAgent('1.0')
  t.after(() => agent.stop())
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const made = await platform.request('POST', '/workspaces', { name: 'relay', runtime: 'a2a', url: agent.url })
  const configuration = { taskPushNotificationConfig: { url: receiver.url } }
  const text = 'stream one two three four five six seven'
  await platform.rpc(made.body.id, 'SendMessage', { message: message(text), configuration })
  await waitUntil(() => summaries(receiver.bodies).includes('TASK_STATE_COMPLETED'))
  assert.deepEqual(summaries(receiver.bodies).slice(-2), ['one two three four five six seven', 'TASK_STATE_COMPLETED'])
})

test('a killed platform continues the webhook calls after its restart and skips none', async (t) => {
  const receiver = await receive(t)
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  let platform = await startPlatform({ dataDir, ...LOOPBACK_ALLOWED })
  t.after(() => platform.dispose())
  receiver.statuses.push(200, 'silence')
  const id = await platform.exec('cat')
  const configuration = { taskPushNotificationConfig: { url: receiver.url } }
  await platform.rpc(id, 'SendMessage', { message: message('hello'), configuration })
  await waitUntil(() => receiver.bodies.length === 2)
  await platform.stop('SIGKILL')
  platform = await startPlatform({ dataDir, ...LOOPBACK_ALLOWED })
  await waitUntil(() => summaries(receiver.bodies).includes('TASK_STATE_COMPLETED'))
  const all = summaries(receiver.bodies)
  assert.equal(all[1], all[2])
  assert.deepEqual([all[0], ...all.slice(2)].slice(-3), ['TASK_STATE_WORKING', 'hello', 'TASK_STATE_COMPLETED'])
})

test('the published clients of both versions set, read and delete webhooks', async (t) => {
  const receiver = await receive(t)
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const id = await platform.exec('cat')
  const task = await platform.send(id, 'hello')
  const endpoint = `${platform.url}/workspaces/${id}/a2a`
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Authorization', `Bearer ${platform.token}`)
    return fetch(input, { ...init, headers })
  }
  const current = await new JsonRpcTransportFactory({ fetchImpl }).create(endpoint, AgentCard.fromJSON({ name: 'x' }))
  const config = TaskPushNotificationConfig.fromJSON({ taskId: task.id, id: 'new', url: receiver.url })
  assert.equal((await current.createTaskPushNotificationConfig(config)).url, receiver.url)
  const name = { tenant: '', taskId: task.id, id: 'new' }
  assert.equal((await current.getTaskPushNotificationConfig(name)).id, 'new')
  const page = { tenant: '', taskId: task.id, pageSize: 0, pageToken: '' }
  assert.equal((await current.listTaskPushNotificationConfig(page)).configs.length, 1)
  await current.deleteTaskPushNotificationConfig(name)

  const old = new OldTransport({ endpoint, fetchImpl })
  const pushNotificationConfig = { id: 'old', url: receiver.url }
  const set = await old.setTaskPushNotificationConfig({ taskId: task.id, pushNotificationConfig })
  const shown = { taskId: task.id, pushNotificationConfig }
  assert.deepEqual(set, shown)
  const named = { id: task.id, pushNotificationConfigId: 'old' }
  assert.deepEqual(await old.getTaskPushNotificationConfig(named), shown)
  assert.deepEqual(await old.listTaskPushNotificationConfig({ id: task.id }), [shown])
  await old.deleteTaskPushNotificationConfig(named)
  assert.deepEqual(await old.listTaskPushNotificationConfig({ id: task.id }), [])
})

test('the push configs of a task do not exist for a caller that did not send it', async (t) => {
  const receiver = await receive(t)
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const id = await platform.exec('cat')
  const configuration = { taskPushNotificationConfig: { url: receiver.url, id: 'hook' } }
  const sent = await platform.rpc(id, 'SendMessage', { message: message('hello'), configuration })
  const taskId = sent.body.result.task.id
  const token = await platform.request('POST', '/tokens', { name: 'stranger', role: 'caller', workspaces: [id] })
  for (const method of ['Get', 'List', 'Delete', 'Create']) {
    const name = method === 'List' ? 'ListTaskPushNotificationConfigs' : `${method}TaskPushNotificationConfig`
    const params = {
      taskId,
      ...(method !== 'List' && { id: 'hook' }),
      ...(method === 'Create' && { url: receiver.url }),
    }
    const answer = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token.body.token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: name, params }),
    })
    assert.equal(((await answer.json()) as Body).error?.code, -32001, name)
  }
  const all = await platform.rpc(id, 'ListTaskPushNotificationConfigs', { taskId })
  assert.deepEqual(
    all.body.result.configs.map((config: Body) => config.id),
    ['hook'],
  )
})

test('AG-17 a webhook to an internal address is refused with the reason, and its message is not admitted', async (t) => {
  const receiver = await receive(t)
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat')
  const { port } = new URL(receiver.url)
  const urls = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '169.254.169.254', '10.0.0.1', '[::ffff:127.0.0.1]']
  for (const host of urls) {
    const url = `http://${host}:${port}/hook`
    const configuration = { taskPushNotificationConfig: { url } }
    const { body } = await platform.rpc(id, 'SendMessage', { message: message('hello'), configuration })
    assert.equal(body.error?.data[0].reason, 'FORBIDDEN', JSON.stringify(body))
    assert.match(body.error.message, /is refused: .*--allow-outbound/)
  }
  assert.equal((await platform.request('GET', `/workspaces/${id}`)).body.queue_depth, 0)
  const task = await platform.send(id, 'hello')
  const create = (config: object) =>
    platform.rpc(id, 'CreateTaskPushNotificationConfig', { taskId: task.id, ...config })
  assert.match((await create({ url: receiver.url })).body.error.message, /loopback/)
  assert.match((await create({ url: 'file:///etc/passwd' })).body.error.message, /neither http nor https/)
  assert.match((await create({ url: 'https://a.test/', token: 'a\nb' })).body.error.message, /plain ASCII/)
  const unknown = { taskId: 'none', url: 'https://example.org/' }
  assert.equal((await platform.rpc(id, 'CreateTaskPushNotificationConfig', unknown)).body.error.code, -32001)
  assert.equal(receiver.bodies.length, 0)
})
