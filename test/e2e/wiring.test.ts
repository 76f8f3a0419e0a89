/** What only the joined platform shows: each part works alone in its own tests, and here that they are connected. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { replyText, sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

test('PL-9 the calls of a worker are not counted against the 600 requests of its token', async (t) => {
  const platform = await startPlatformFor(t)
  const { id, auth_token: token } = await createExternalWorkspace(platform)
  const call = async (path: string, body: object) =>
    fetch(`${platform.url}${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    }).then(async (response) => {
      await response.text()
      return response.status
    })
  const lease = { bridge: 'b1', host: 'h1', holding: [], leases_max: 1, wait_ms: 0 }
  const statuses = new Set<number>()
  for (let calls = 0; calls < 620; calls += 20) {
    const answers = Array.from({ length: 10 }, () => [
      call(`/workspaces/${id}/inbox/lease`, lease),
      call(`/workspaces/${id}/inbox/extend`, { keys: [] }),
    ])
    for (const status of await Promise.all(answers.flat())) statuses.add(status)
  }
  assert.deepEqual([...statuses], [200])
  assert.equal(await call('/registry/heartbeat', { workspace_id: id }), 200)
})

test('PL-10 the tokens of turns are counted in the metrics', async (t) => {
  const platform = await startPlatformFor(t)
  const wanted = { name: 'counting', runtime: 'mock', runtime_config: { usage: 'true', reply: 'one two three' } }
  const { body } = await platform.request('POST', '/workspaces', wanted)
  const counters = async () => {
    const response = await fetch(`${platform.url}/metrics`, { headers: { Authorization: `Bearer ${platform.token}` } })
    const text = await response.text()
    const read = (name: string) =>
      Number(new RegExp(`^molecule_tokens_total\\{direction="${name}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
    return { input: read('input'), output: read('output') }
  }
  assert.deepEqual(await counters(), { input: 0, output: 0 })
  await platform.send(body.id, 'hello there')
  const first = await counters()
  assert.ok(first.input > 0 && first.output > 0, JSON.stringify(first))
  await platform.send(body.id, 'hello there')
  assert.deepEqual(await counters(), { input: 2 * first.input, output: 2 * first.output })
  const { body: usage } = await platform.request('GET', `/workspaces/${body.id}/usage`)
  assert.match(JSON.stringify(usage), new RegExp(`"input_tokens":${2 * first.input}\\b`))
})

test('PL-10 the turns of a bridge are counted in the metrics, with their failures', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const cmd = 'read text; [ "$text" = bad ] && exit 3; echo fine'
  const bridge = await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd })
  const metrics = async () =>
    (await fetch(`${platform.url}/metrics`, { headers: { Authorization: `Bearer ${platform.token}` } })).text()
  await platform.send(workspace.id, 'good\n')
  await waitUntil(
    async () => /^molecule_turns_total\{outcome="done"\} 1$/m.test(await metrics()),
    'the turn is counted',
  )
  await sendWithoutWaiting(platform, workspace.id, 'bad\n')
  await bridge.waitForOutput(/failed: .*exit code 3/)
  await waitUntil(
    async () => /^molecule_turn_failures_total\{code="\w+"\} 1$/m.test(await metrics()),
    'the failure is counted',
  )
})

/** A file on loopback, and how often it was fetched. */
async function serveFile(t: TestContext, content: string | Buffer = 'the secret of the local network') {
  const calls: string[] = []
  const server = createServer((request, response) => {
    calls.push(request.url ?? '')
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end(content)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.txt` }
}

const { path: claude } = createFakeProgram('claude')

for (const isAllowed of [false, true]) {
  const title = isAllowed ? 'is fetched if --allow-outbound names it' : 'is never fetched'
  test(`PL-17 an attachment at a private address ${title}`, async (t) => {
    const { calls, url } = await serveFile(t)
    const args = isAllowed ? ['--allow-outbound', '127.0.0.1/32'] : []
    const platform = await startPlatformFor(t, { args, env: CLAUDE_LOGGED_IN })
    const wanted = { name: 'reader', runtime: 'claude-code', runtime_config: { bin: claude } }
    const { body } = await platform.request('POST', '/workspaces', wanted)
    assert.equal(body.status, 'online', body.status_reason)
    const parts = [{ text: 'read it' }, { url, mediaType: 'text/plain', filename: 'file.txt' }]
    const task = await platform.send(body.id, '', { parts })
    assert.equal(task.status.state, isAllowed ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_FAILED')
    assert.deepEqual(calls, isAllowed ? ['/file.txt'] : [])
    if (isAllowed) assert.match(replyText(task) ?? '', /file\.txt/)
  })
}

test('PL-17 the attachments of a message have at most 25 MiB', async (t) => {
  const platform = await startPlatformFor(t, { args: ['--allow-outbound', '127.0.0.1/32'] })
  const wanted = { name: 'reader', runtime: 'claude-code', runtime_config: { bin: claude }, max_attempts: 1 }
  const { body } = await platform.request('POST', '/workspaces', wanted)
  const states: string[] = []
  for (const bytes of [25 * 1024 * 1024, 25 * 1024 * 1024 + 1]) {
    const { url } = await serveFile(t, Buffer.alloc(bytes, 'x'))
    const parts = [{ text: 'read it' }, { url, mediaType: 'text/plain', filename: 'file.txt' }]
    states.push((await platform.send(body.id, '', { parts })).status.state)
  }
  assert.deepEqual(states, ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'])
})
