/** Work that a token began and that goes on without further calls: it ends with the token, on a real platform. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createHandWorker } from '../harness/hand-worker.ts'
import { serve } from '../harness/loopback-server.ts'
import { newMessage, type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const LOOPBACK_ALLOWED = { args: ['--allow-outbound', '127.0.0.1/32'] }
const RESULT = 'the quarterly numbers'

interface Request {
  readonly method?: string
  readonly path: string
  readonly body?: object
}

async function callAs({ url }: PlatformUnderTest, token: string, { method = 'GET', path, body }: Request) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** A receiver of webhooks; `heard` is everything that was sent to it. */
async function receiver(t: TestContext) {
  const bodies: string[] = []
  const { url } = await serve(t, async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    response.end()
  })
  return { url: `${url}/hook?key=secret`, heard: () => bodies.join('\n') }
}

/** A caller's task that runs, whose events the caller and an admin receive. */
async function openPushedTask(t: TestContext, more: object = {}) {
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const agent = await createHandWorker(platform, { name: 'agent' })
  const made = await platform.request('POST', '/tokens', {
    name: 'program',
    role: 'caller',
    workspaces: [agent.workspaceId],
    ...more,
  })
  const { id, token } = made.body as { id: string; token: string }
  const [callers, admins] = [await receiver(t), await receiver(t)]
  const path = `/workspaces/${agent.workspaceId}/a2a`
  const params = {
    message: newMessage('count'),
    configuration: { returnImmediately: true, taskPushNotificationConfig: { url: callers.url } },
  }
  const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }
  const sent = await callAs(platform, token, { method: 'POST', path, body })
  const taskId: string = sent.body.result.task.id
  await platform.rpc(agent.workspaceId, 'CreateTaskPushNotificationConfig', { taskId, id: 'admin', url: admins.url })
  const turn = await agent.lease()
  await waitUntil(() => callers.heard().includes('WORKING') && admins.heard() !== '', 'both webhooks work')
  /** The turn ends; resolves when the other webhook has the result. */
  const finish = async () => {
    await turn.answer(RESULT)
    await waitUntil(() => admins.heard().includes('COMPLETED'), 'the other webhook has the result')
    assert.ok(admins.heard().includes(RESULT))
  }
  return { platform, id, token, callers, finish }
}

test('PL-12 PL-19 RE-9 the webhook of a revoked caller gets no result; that of another token does', async (t) => {
  const { platform, id, callers, finish } = await openPushedTask(t)
  assert.equal((await platform.request('DELETE', `/tokens/${id}`)).status, 204)
  await finish()
  assert.ok(!callers.heard().includes(RESULT))
})

test('PL-12 PL-19 RE-9 the webhook of a secret that a rotation has replaced gets no result', async (t) => {
  const { platform, id, callers, finish } = await openPushedTask(t)
  assert.equal((await platform.request('POST', `/tokens/${id}/rotate`, { overlap: '0s' })).status, 200)
  await finish()
  assert.ok(!callers.heard().includes(RESULT))
})

test('PL-12 PL-19 RE-9 the webhook of an expired token gets no result', async (t) => {
  const { platform, token, callers, finish } = await openPushedTask(t, { expires_in: '4s' })
  const isRefused = async () => (await callAs(platform, token, { path: '/me' })).status === 401
  await waitUntil(isRefused, 'the token has expired')
  await finish()
  assert.ok(!callers.heard().includes(RESULT))
})

test('PL-12 SC-1 CV-6 RE-9 the schedules of a revoked token pause and need a person, who resumes them', async (t) => {
  const platform = await startPlatformFor(t, LOOPBACK_ALLOWED)
  const workspaceId = await platform.exec('cat', { name: 'echo' })
  const create = async (role: string) => (await platform.request('POST', '/tokens', { name: role, role })).body
  const [member, viewer] = [await create('member'), await create('viewer')]
  const path = `/workspaces/${workspaceId}/schedules`
  const { url } = await receiver(t)
  const draft = { cron: '* * * * *', text: 'look', name: 'nightly', webhook: url }
  const made = await callAs(platform, member.token, { method: 'POST', path, body: draft })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  await platform.request('POST', path, { ...draft, name: 'of the admin' })
  const listed = async (token = platform.token) =>
    (await callAs(platform, token, { path: '/schedules' })).body.schedules as Record<string, unknown>[]

  assert.deepEqual(
    (await listed(viewer.token)).map(({ webhook }) => webhook),
    [null, null],
    'an address may have a key in it',
  )
  assert.deepEqual(
    (await listed(member.token)).map(({ webhook }) => webhook),
    [url, url],
  )

  await platform.request('DELETE', `/tokens/${member.id}`)
  const reason = 'the token that made it was revoked'
  assert.deepEqual(
    (await listed()).map(({ name, paused, note, next_at }) => [name, paused, note, next_at === null]),
    [
      ['nightly', true, reason, true],
      ['of the admin', false, null, false],
    ],
  )
  const readNeeds = async () => (await platform.request('GET', '/needs-you')).body
  const { needs_you: needs, count } = await readNeeds()
  const [need] = needs
  assert.deepEqual([count, need.kind, need.workspace_id, need.id], [1, 'schedule', workspaceId, made.body.id])
  assert.equal(need.reason, `the schedule "nightly" is paused: ${reason}`)
  // A change that does not resume it leaves it paused.
  await platform.request('PATCH', `/schedules/${need.id}`, { text: 'look again' })
  const [resume, remove] = need.actions
  assert.deepEqual([resume.name, remove.name, remove.path], ['resume', 'discard', `/schedules/${need.id}`])
  assert.equal((await readNeeds()).count, 1)
  const resumed = await platform.request(resume.method, resume.path, resume.body)
  assert.deepEqual([resumed.body.paused, resumed.body.note, resumed.body.text], [false, null, 'look again'])
  assert.equal((await readNeeds()).count, 0)
})
