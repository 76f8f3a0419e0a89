/** Attacks with the tokens that processes of turns get, on a real platform. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { type PlatformUnderTest, replyText, startPlatform, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const META = { runtime_config: { pass_meta: 'true', timeout: '60s' } }

/** A workspace whose turns write their token to a file that is named by the message. */
async function createLeaky(platform: PlatformUnderTest, folder: string, more: object = {}): Promise<string> {
  return await platform.exec(`printf %s "$MOLECULE_WORKSPACE_TOKEN" > ${folder}/$(cat)`, { ...META, ...more })
}

async function leakToken(platform: PlatformUnderTest, id: string, options: { folder: string; contextId: string }) {
  const { folder, contextId } = options
  const name = `token-${contextId}`
  const task = await platform.send(id, name, { contextId })
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
  return readFileSync(join(folder, name), 'utf8')
}

async function call(
  { url }: PlatformUnderTest,
  token: string,
  request: { method?: string; path: string; body?: object },
) {
  const { method = 'GET', path, body } = request
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) }
}

const statusOf = async (platform: PlatformUnderTest, token: string, path: string) =>
  (await call(platform, token, { path })).status

const rpc = async (
  platform: PlatformUnderTest,
  token: string,
  target: { id: string; method: string; params: object },
) => {
  const body = { jsonrpc: '2.0', id: 1, method: target.method, params: target.params }
  return (await call(platform, token, { method: 'POST', path: `/workspaces/${target.id}/a2a`, body })).json
}

test("PL-12 RT-12 one conversation neither reads nor cancels another's delegations; its workspace sees both", async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryDir(t)
  const asker = await createLeaky(platform, folder)
  const colleague = await platform.exec('sleep 60', { name: 'colleague' })
  const one = await leakToken(platform, asker, { folder, contextId: 'one' })
  const other = await leakToken(platform, asker, { folder, contextId: 'other' })
  assert.notEqual(one, other)
  const message = { messageId: 'd-1', role: 'ROLE_USER', parts: [{ text: 'a secret plan' }] }
  const params = { message, configuration: { returnImmediately: true } }
  const sent = await rpc(platform, one, { id: colleague, method: 'SendMessage', params })
  const taskId = sent.result.task.id
  const get = (token: string) => rpc(platform, token, { id: colleague, method: 'GetTask', params: { id: taskId } })
  const list = async (token: string) =>
    (await rpc(platform, token, { id: colleague, method: 'ListTasks', params: {} })).result.tasks.length
  assert.equal((await get(one)).result.id, taskId)
  assert.equal((await get(other)).error.data[0].reason, 'TASK_NOT_FOUND')
  assert.equal(await statusOf(platform, other, `/tasks/${taskId}`), 404)
  assert.equal(await statusOf(platform, other, '/messages/d-1/story'), 404)
  const cancel = await rpc(platform, other, { id: colleague, method: 'CancelTask', params: { id: taskId } })
  assert.equal(cancel.error.data[0].reason, 'TASK_NOT_FOUND')
  const own = await platform.request('POST', '/tokens', { name: 'own', role: 'workspace', workspace_id: asker })
  const workspaceToken = own.body.token
  assert.equal((await get(workspaceToken)).result.id, taskId)
  assert.equal(await statusOf(platform, workspaceToken, `/tasks/${taskId}`), 200)
  assert.equal(await statusOf(platform, workspaceToken, '/messages/d-1/story'), 200)
  assert.deepEqual([await list(one), await list(other), await list(workspaceToken)], [1, 0, 1])
  const canceled = await rpc(platform, workspaceToken, { id: colleague, method: 'CancelTask', params: { id: taskId } })
  assert.equal(canceled.result.status.state, 'TASK_STATE_CANCELED')
})

test('PL-12 a restart, a revocation and a deletion of the workspace end its conversation tokens at once', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryDir(t)
  const id = await createLeaky(platform, folder, { name: 'leaky' })
  const neighbour = await createLeaky(platform, folder, { name: 'neighbour' })
  const path = `/workspaces/${id}`
  const neighbours = await leakToken(platform, neighbour, { folder, contextId: 'neighbour' })
  const newToken = async (contextId: string) => {
    const token = await leakToken(platform, id, { folder, contextId })
    assert.equal(await statusOf(platform, token, path), 200)
    return token
  }
  const restarted = await newToken('a')
  assert.equal((await platform.request('POST', `${path}/restart`)).status, 200)
  assert.equal(await statusOf(platform, restarted, path), 401)
  const revoked = await newToken('a')
  assert.notEqual(revoked, restarted, 'the next turn gets a new token')
  assert.equal((await platform.request('DELETE', `${path}/conversation-tokens`)).status, 204)
  assert.equal(await statusOf(platform, revoked, path), 401)
  const own = await platform.request('POST', '/tokens', { name: 'own', role: 'workspace', workspace_id: id })
  const withOwn = await newToken('a')
  assert.equal((await platform.request('DELETE', `/tokens/${own.body.id}`)).status, 204)
  assert.equal(await statusOf(platform, withOwn, path), 401)
  const deleted = await newToken('a')
  assert.equal((await platform.request('DELETE', `${path}?confirm=leaky`)).status, 200)
  assert.equal(await statusOf(platform, deleted, path), 401)
  assert.equal(await statusOf(platform, neighbours, `/workspaces/${neighbour}`), 200)
})

test('PL-12 RT-12 a warm agent keeps its process while its token is the same, and the next turn replaces it after', async (t) => {
  const platform = await startPlatformFor(t)
  const { path: bin, dir } = createFakeProgram('claude')
  const wanted = { name: 'warm', runtime: 'claude-code', runtime_config: { bin } }
  const { body } = await platform.request('POST', '/workspaces', wanted)
  /** The tokens of the processes that were started, after one more turn. */
  const tokensAfterTurn = async (): Promise<string[]> => {
    const task = await platform.send(body.id, 'hello', { contextId: 'one' })
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED')
    const starts = readFileSync(join(dir, 'starts.jsonl'), 'utf8').trim().split('\n')
    return starts.map((line) => JSON.parse(line).env.MOLECULE_WORKSPACE_TOKEN).filter((token) => token !== undefined)
  }
  const [first = ''] = await tokensAfterTurn()
  assert.deepEqual(await tokensAfterTurn(), [first])
  assert.equal(await statusOf(platform, first, `/workspaces/${body.id}`), 200)
  assert.equal((await platform.request('DELETE', `/workspaces/${body.id}/conversation-tokens`)).status, 204)
  const [, second = '', ...others] = await tokensAfterTurn()
  assert.deepEqual(others, [])
  assert.equal(await statusOf(platform, first, `/workspaces/${body.id}`), 401)
  assert.equal(await statusOf(platform, second, `/workspaces/${body.id}`), 200)
})

test('PL-12 a waiting call of a conversation ends when its token is revoked', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryDir(t)
  const id = await createLeaky(platform, folder)
  const slow = await platform.exec('sleep 60', { name: 'slow' })
  const token = await leakToken(platform, id, { folder, contextId: 'a' })
  const message = { messageId: 'w-1', role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const waiting = rpc(platform, token, { id: slow, method: 'SendMessage', params: { message } })
  await waitUntil(async () => (await platform.request('GET', `/workspaces/${slow}`)).body.running === 1)
  assert.equal((await platform.request('DELETE', `/workspaces/${id}/conversation-tokens`)).status, 204)
  assert.equal((await waiting).error.data[0].reason, 'UNAUTHENTICATED')
})

test("PL-12 a restart of the platform ends the tokens of its own processes, and not those of a bridge's", async (t) => {
  const folder = temporaryDir(t)
  const dataDir = temporaryDir(t)
  let platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const hosted = await createLeaky(platform, folder, { name: 'hosted' })
  const workspace = await createExternalWorkspace(platform)
  const args = ['--backend-opt', 'pass_meta=true']
  const cmd = `printf %s "$MOLECULE_WORKSPACE_TOKEN" > ${folder}/$(cat)`
  const token = ['--token', workspace.auth_token]
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd, args, token })
  const ofHosted = await leakToken(platform, hosted, { folder, contextId: 'hosted' })
  const ofBridge = await leakToken(platform, workspace.id, { folder, contextId: 'bridge' })
  await platform.stop()
  platform = await startPlatform({ dataDir })
  assert.equal(await statusOf(platform, ofHosted, `/workspaces/${hosted}`), 401)
  assert.equal(await statusOf(platform, ofBridge, `/workspaces/${workspace.id}`), 200)
})

test('PL-12 PL-15 tokens are masked in replies, streams, artifacts and activity, also when they come in pieces', async (t) => {
  const platform = await startPlatformFor(t)
  const pieces = 'for i in $(seq 1 ${#T}); do printf %s "$(printf %s "$T" | cut -c $i)"; sleep 0.002; done'
  const id = await platform.exec(`T=$MOLECULE_WORKSPACE_TOKEN; echo "begin $T end"; ${pieces}; echo " end"`, META)
  const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage' }
  const message = { messageId: 's-1', role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const response = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${platform.token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, params: { message } }),
  })
  const stream = await response.text()
  const updates = [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '').result.artifactUpdate)
  const streamed = updates.flatMap((update) => update?.artifact.parts.map(({ text = '' }) => text) ?? []).join('')
  assert.match(stream, /begin \[hidden\] end/)
  for (const text of [stream, streamed]) assert.doesNotMatch(text, /mol_conversation|conversation_ws_/)
  assert.equal(replyText(await platform.send(id, 'y')), 'begin [hidden] end\n[hidden] end\n')
  await platform.request('PUT', `/workspaces/${id}/status`, { text: `my token is ${platform.token}` })
  const { body: activity } = await platform.request('GET', `/workspaces/${id}/activity`)
  assert.doesNotMatch(JSON.stringify(activity), /mol_/)
  assert.doesNotMatch(platform.output(), /mol_conversation/)
})
