/** What callers, owners and the log show of a failed turn. The platform runs in this process so that its log can be read. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Platform, wire } from '../../src/cli/wire.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createLog } from '../../src/log.ts'
import type { Task } from '../../src/protocol/a2a.ts'
import { waitUntil } from '../harness/wait.ts'

const ADMIN = 'the-admin-of-the-failing-platform'
const KEY = `sk-live-${'k'.repeat(40)}`
const VARIABLE = 'value-of-a-variable-we-hold'

let folder: string
let platform: Platform
const logged: string[] = []

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'molecule-failures-'))
  const config = await loadConfig({ flags: { port: '0', 'data-dir': folder }, env: {} })
  const log = createLog('info', { write: (line) => logged.push(line) })
  const environment = { ...process.env, SOME_API_KEY: VARIABLE }
  platform = await wire({ config, adminToken: ADMIN, folder: { host: 'host', standing: 'same' }, log, environment })
})
after(async () => {
  await platform.close(1000)
  await rm(folder, { recursive: true })
})

// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
async function call(path: string, options: { body?: object; token?: string } = {}): Promise<any> {
  const answer = await fetch(platform.url + path, {
    method: options.body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${options.token ?? ADMIN}` },
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
  })
  return answer.json()
}

const tokenOf = async (input: object) => (await call('/tokens', { body: { name: 'x', ...input } })).token as string

const rpc = async (id: string, method: string, request: { params: object; token?: string }): Promise<Task> => {
  const { params, ...by } = request
  const { result } = await call(`/workspaces/${id}/a2a`, { body: { jsonrpc: '2.0', id: 1, method, params }, ...by })
  return result.task ?? result
}

const hello = () => ({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] } })

async function failingWorkspace(cmd: string): Promise<string> {
  const body = { name: 'fails', runtime: 'exec', max_attempts: 1, runtime_config: { cmd } }
  return (await call('/workspaces', { body })).id
}

const CMD = `echo "cannot open /srv/private/ada.db with ${KEY} and ${VARIABLE}, at Object.<anonymous> (app.js:3)" >&2; exit 3`

test("RT-7 a caller sees one clean sentence with category and id; owners also see the program's stderr", async () => {
  const id = await failingWorkspace(CMD)
  const caller = await tokenOf({ role: 'caller', workspaces: [id] })
  const task = await rpc(id, 'SendMessage', { params: hello(), token: caller })
  assert.equal(task.status.state, 'TASK_STATE_FAILED')
  const { parts, metadata } = task.status.message ?? { parts: [] }
  const errorId = String(metadata?.['error_id'])
  assert.deepEqual(metadata, { code: 'exit', category: 'exit_3', error_id: errorId })
  assert.deepEqual(parts, [{ text: `the agent's program ended with exit code 3 (exit_3, ${errorId})` }])
  for (const role of ['viewer', 'workspace'] as const) {
    const token = await tokenOf(role === 'viewer' ? { role } : { role, workspace_id: id })
    const seen = JSON.stringify((await rpc(id, 'GetTask', { params: { id: task.id }, token })).status)
    assert.doesNotMatch(seen, /srv|sk-live|Object|echo/)
  }
  for (const token of [ADMIN, await tokenOf({ role: 'member' })]) {
    const seen = (await rpc(id, 'GetTask', { params: { id: task.id }, token })).status.message
    assert.match(seen?.parts[0]?.text ?? '', /^the agent's program ended .*\n.*exited with code 3.*srv\/private/)
    assert.match(String(seen?.metadata?.['detail']), /srv\/private/)
    assert.ok(!JSON.stringify(seen).includes(KEY) && !JSON.stringify(seen).includes(VARIABLE))
    const sent = await rpc(id, 'SendMessage', { params: hello(), token })
    assert.match(String(sent.status.message?.metadata?.['detail']), /srv\/private/, 'the answer of a blocking send')
  }
})

test('RT-7 the log has the full error under the same id, with secrets masked', async () => {
  const id = await failingWorkspace(CMD)
  const task = await rpc(id, 'SendMessage', { params: hello() })
  const errorId = String(task.status.message?.metadata?.['error_id'])
  const line = logged.find((one) => one.includes(errorId)) ?? ''
  assert.match(line, /srv\/private/)
  assert.match(line, new RegExp(task.id))
  assert.ok(!line.includes(KEY) && !line.includes(VARIABLE))
})

test('RT-7 dead letters show the detail to owners and only the sentence to viewers', async () => {
  const id = await failingWorkspace(CMD)
  await rpc(id, 'SendMessage', { params: hello() })
  const path = `/workspaces/${id}/dead-letters`
  const [owned] = (await call(path)).dead_letters
  assert.match(owned.reason, /^the agent's program ended with exit code 3/)
  assert.match(owned.detail, /srv\/private/)
  const [viewed] = (await call(path, { token: await tokenOf({ role: 'viewer' }) })).dead_letters
  assert.equal(viewed.detail, undefined)
  assert.doesNotMatch(viewed.reason, /srv/)
})

test('RT-7 the status of a task that waits for a retry is clean too', async () => {
  const body = { name: 'retries', runtime: 'exec', runtime_config: { cmd: CMD } }
  const { id } = await call('/workspaces', { body })
  const token = await tokenOf({ role: 'caller', workspaces: [id] })
  const params = { ...hello(), configuration: { returnImmediately: true } }
  let task = await rpc(id, 'SendMessage', { params, token })
  await waitUntil(async () => {
    task = await rpc(id, 'GetTask', { params: { id: task.id }, token })
    return task.status.message?.metadata?.['error_id'] !== undefined
  })
  const text = task.status.message?.parts[0]?.text ?? ''
  assert.match(text, /^attempt 2 of 4 in 5 s: the agent's program ended with exit code 3 \(exit_3, err_/)
  await rpc(id, 'CancelTask', { params: { id: task.id }, token })
})

test('PL-10 failed turns are counted by error code', async () => {
  await rpc(await failingWorkspace('exit 3'), 'SendMessage', { params: hello() })
  const answer = await fetch(`${platform.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN}` } })
  const text = await answer.text()
  assert.match(text, /^molecule_turns_total\{outcome="dead"\} [1-9]/m)
  assert.match(text, /^molecule_turn_failures_total\{code="exit"\} [1-9]/m)
  assert.match(text, /^molecule_http_requests_total\{status="2xx"\} [1-9]/m)
})

test('PL-15 the traceparent of a request reaches the program', async () => {
  const body = { name: 'traced', runtime: 'exec', runtime_config: { cmd: 'printf %s "$TRACEPARENT"' } }
  const { id } = await call('/workspaces', { body })
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const answer = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN}`, traceparent },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: hello() }),
  })
  const { result } = (await answer.json()) as { result: { task: Task } }
  assert.equal(result.task.artifacts?.[0]?.parts[0]?.text, traceparent)
})

test('RT-7 EX-5 an owner sees the last 500 characters of stderr, also in explain, and the log has the last 1024 bytes', async () => {
  const id = await failingWorkspace(`printf '%03000d' 0 | tr 0 E >&2; echo ' THE-END' >&2; exit 3`)
  const { id: taskId } = await rpc(id, 'SendMessage', { params: hello() })
  const count = (text: string) => /E{100,}/.exec(text)?.[0].length
  const { dead_letters: shown } = await call(`/workspaces/${id}/dead-letters`)
  const end = ' THE-END'
  const { steps } = await call(`/messages/${taskId}/story`)
  for (const text of [shown, steps].map((value) => JSON.stringify(value))) {
    assert.equal(count(text), 500 - end.length)
    assert.match(text, /stderr: \.\.\.E+ THE-END\)/)
  }
  const lines = logged.filter((line) => line.includes(taskId) && line.includes('EEEE'))
  assert.equal(count(lines[0] ?? ''), 1024 - `${end}\n`.length)
})

test('RT-6 a command that is not there or not executable fails at its first attempt', async () => {
  for (const [cmd, category, words] of [
    ['no-such-command-here', 'exit_127', /was not found \(exit code 127\)/],
    ['echo > plain; ./plain', 'exit_126', /is not executable \(exit code 126\)/],
  ] as const) {
    const body = { name: 'missing', runtime: 'exec', runtime_config: { cmd } }
    const { id } = await call('/workspaces', { body })
    const task = await rpc(id, 'SendMessage', { params: hello() })
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.equal(task.status.message?.metadata?.['category'], category)
    assert.match(task.status.message?.parts[0]?.text ?? '', words)
    const [dead] = (await call(`/workspaces/${id}/dead-letters`)).dead_letters
    assert.equal(dead.failures, 1)
  }
})
