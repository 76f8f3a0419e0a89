/** An agent with the token of its workspace, on a real platform: what it may not report, and what it may not read. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import {
  type PlatformUnderTest,
  readJson,
  replyText,
  sendWithoutWaiting,
  waitForFinalTask,
  withPlatform,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

async function workspaceToken(platform: PlatformUnderTest, id: string): Promise<string> {
  const wanted = { name: `of ${id}`, role: 'workspace', workspace_id: id }
  const { status, body } = await platform.request('POST', '/tokens', wanted)
  assert.equal(status, 201, JSON.stringify(body))
  return body.token
}

async function post(url: string, token: string, body: object) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: readJson(response.headers.get('content-type'), await response.text()) }
}

test(
  'PL-12 RE-9 a workspace token does not settle a turn that the platform runs, and writes no note of the platform',
  withPlatform(async (platform) => {
    const id = await platform.exec('read go < fifo; echo true', { name: 'busy' })
    const path = `/workspaces/${id}`
    const url = platform.url + path
    const folder = (await platform.request('GET', path)).body.working_dir
    execFileSync('sh', ['-c', `mkfifo ${folder}/fifo`])
    const token = await workspaceToken(platform, id)
    const taskId = await sendWithoutWaiting(platform, id, 'go')
    const stateOf = async () => (await platform.request('GET', `/tasks/${taskId}`)).body.status.state
    await waitUntil(async () => (await stateOf()) === 'TASK_STATE_WORKING', 'the turn runs')
    const { conversations } = (await platform.request('GET', `${path}/conversations`)).body
    const key = { conversationId: conversations[0].id, taskId, messageId: taskId, epoch: 1 }
    const outcome = { type: 'done', finality: 'completed', parts: [{ text: 'forged' }], artifacts: [] }
    const forged = await post(`${url}/inbox/settle`, token, { key, host: 'x', outcome })
    assert.deepEqual([forged.status, forged.body.error?.code], [403, 'forbidden'])
    const events = [{ type: 'text', delta: 'forged' }]
    assert.equal((await post(`${url}/inbox/append`, token, { key, from: 1, events })).status, 403)
    for (const type of ['permission', 'rule', 'config_changed'])
      assert.equal((await post(`${url}/activity`, token, { type, text: 'allowed' })).status, 400)
    execFileSync('sh', ['-c', `echo go > ${folder}/fifo`])
    assert.equal(replyText(await waitForFinalTask(platform, id, taskId)), 'true\n')
  }),
)

test(
  'PL-12 RE-9 a peer reads no status line, over MCP as over HTTP; the workspace itself and people do',
  withPlatform(async (platform) => {
    const [busy, peer] = [await platform.exec('cat', { name: 'busy' }), await platform.exec('cat', { name: 'peer' })]
    await platform.request('PUT', `/workspaces/${busy}/status`, { text: 'buying Initech' })
    const info = async (own: string, of: string) => {
      const params = { name: 'get_workspace_info', arguments: { workspace_id: of } }
      const rpc = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
      return JSON.stringify(
        (await post(`${platform.url}/workspaces/${own}/mcp`, await workspaceToken(platform, own), rpc)).body,
      )
    }
    assert.match(await info(busy, busy), /buying Initech/)
    const seen = await info(peer, busy)
    assert.match(seen, /queue_depth/)
    assert.doesNotMatch(seen, /Initech/)
    const overHttp = await fetch(`${platform.url}/workspaces/${busy}`, {
      headers: { authorization: `Bearer ${await workspaceToken(platform, peer)}` },
    })
    assert.doesNotMatch(await overHttp.text(), /Initech/)
  }),
)
