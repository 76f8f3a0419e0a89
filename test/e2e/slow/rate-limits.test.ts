/** Rate limits and used-up quotas through a running platform, with a fake claude that answers as the provider does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Task } from '../../../src/protocol/a2a.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../../harness/bridge.ts'
import { openTerminal, runCommand } from '../../harness/command.ts'
import {
  getTask,
  getWorkspace,
  type PlatformUnderTest,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  startPlatformFor,
  waitForFinalTask,
} from '../../harness/platform.ts'
import { temporaryDir } from '../../harness/process-harness.ts'
import { waitUntil } from '../../harness/wait.ts'

const { path: bin } = createFakeProgram('claude')

async function agent(platform: PlatformUnderTest, more: { max_attempts?: number; rate_limit_patience?: string } = {}) {
  const { max_attempts = 1, ...options } = more
  const runtime_config = { bin, mode: 'oneshot', ...options }
  const wanted = { name: 'limited', runtime: 'claude-code', max_attempts, runtime_config }
  const { body } = await platform.request('POST', '/workspaces', wanted)
  assert.equal(body.status, 'online', body.status_reason)
  return body.id as string
}

/** Sends a message; its task when a first attempt has failed. */
async function sendUntilRefused(platform: PlatformUnderTest, id: string, text: string): Promise<Task> {
  const taskId = await sendWithoutWaiting(platform, id, text)
  let task: Task = await getTask(platform, id, taskId)
  await waitUntil(async () => {
    task = await getTask(platform, id, taskId)
    return task.status.message?.metadata?.['error_id'] !== undefined
  }, 'the first attempt fails')
  return task
}

const waitMinutes = ({ status }: Task): number =>
  (Date.parse(String(status.message?.metadata?.['next_try_at'])) - Date.parse(String(status.timestamp))) / 60_000

test('RT-14 a 429 without a time is parked when the attempts are used up, with the reason and the next time', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform)
  const task = await sendUntilRefused(platform, id, '!refuse 429 API Error: 429 slow down')
  assert.equal(task.status.state, 'TASK_STATE_WORKING')
  const parked = /^parked, next try at \d\d:\d\d UTC: the model provider's rate limit is reached \(rate_limited, err_/
  assert.match(reasonText(task), parked)
  assert.equal(task.status.message?.metadata?.['category'], 'rate_limited')
  assert.equal(Math.round(waitMinutes(task)), 1)
})

test('RT-14 every view of a parked message says why it waits and until when', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform)
  const task = await sendUntilRefused(platform, id, '!refuse 400 Your credit balance is too low, resets in 3 hours')
  const parked = /parked, next try at \d\d:\d\d UTC: the quota or credit at the model provider is used up/
  const { status, status_reason: reason } = await getWorkspace(platform, id)
  assert.equal(status, 'degraded')
  assert.match(reason, new RegExp(`^a message waits: ${parked.source}`))
  const { activity } = (await platform.request('GET', `/workspaces/${id}/activity?limit=100`)).body
  assert.ok(activity.some((entry: { text?: string }) => parked.test(entry.text ?? '')))
  const env = { MOLECULE_HOME: platform.dataDir }
  const explained = await runCommand(['explain', task.id], { env })
  assert.match(explained.out, parked)
  assert.match(explained.out, /it will be tried again in (2 h \d+ min|3 h)\n/)
  for (const list of ['workspace', 'agent']) {
    const { out } = await runCommand([list, 'list'], { env })
    assert.match(out, /degraded \(a message waits: parked, next try at/, list)
  }
  for (const args of [['show', task.id], ['list']])
    assert.match((await runCommand(['task', ...args], { env })).out, /parked, next try at \d\d:\d\d UTC/)
})

test('RT-14 a chat shows why its message is parked and until when, also after it was opened again', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  await agent(platform)
  const open = async () => {
    const typing = openTerminal(t, ['chat', 'limited'], { MOLECULE_HOME: platform.dataDir, NO_COLOR: '1' })
    await typing.waitForText(/you talk to limited/)
    return typing
  }
  const reason = /· parked, next try at \d\d:\d\d UTC: the model provider's rate limit is reached/
  const first = await open()
  first.type('!refuse 429 API Error: 429 slow down\r')
  await first.waitForText(reason)
  first.type('\u0004')
  assert.equal(await first.ended(), 0)
  const second = await open()
  await second.waitForText(reason)
})

test('RT-14 a parked message is tried again by the next process of the platform', async (t) => {
  const dataDir = temporaryDir(t)
  const first = await startPlatform({ dataDir, env: CLAUDE_LOGGED_IN })
  const id = await agent(first, { rate_limit_patience: '15s' })
  const task = await sendUntilRefused(first, id, '!refuse-once 429 API Error: 429 try later')
  assert.match(reasonText(task), /^parked, /)
  await first.dispose()
  const second = await startPlatform({ dataDir, env: CLAUDE_LOGGED_IN })
  t.after(() => second.dispose())
  const ended = await waitForFinalTask(second, id, task.id)
  assert.equal(replyText(ended), 'answered after all')
  const { steps } = (await second.request('GET', `/messages/${task.id}/story`)).body
  const started = steps.filter(({ type }: { type: string }) => type === 'started')
  assert.equal(started.length, 2)
})

test('RT-14 after rate_limit_patience the message is a dead letter that says how long it waited', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform, { rate_limit_patience: '2s' })
  const taskId = await sendWithoutWaiting(platform, id, '!refuse 429 API Error: 429 slow down')
  const task = await waitForFinalTask(platform, id, taskId)
  assert.equal(task.status.state, 'TASK_STATE_FAILED')
  assert.match(
    reasonText(task),
    /^given up after \d+ s \(rate_limit_patience\): the model provider's rate limit is reached/,
  )
  const [dead] = (await platform.request('GET', `/workspaces/${id}/dead-letters`)).body.dead_letters
  assert.equal(dead.failures, 1)
})

test('RT-6 a 429 with a time is tried again at that time', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform, { max_attempts: 4 })
  const task = await sendUntilRefused(platform, id, '!refuse 429 API Error: 429, retry after 7 minutes')
  assert.match(reasonText(task), /^attempt 2 of 4 in 7 min: the model provider's rate limit is reached/)
  assert.equal(Math.round(waitMinutes(task)), 7)
  const soon = await sendWithoutWaiting(platform, id, '!refuse-once 429 API Error: 429, retry after 1 second')
  assert.equal(replyText(await waitForFinalTask(platform, id, soon)), 'answered after all')
})

test('RT-14 a used-up quota is parked until its named reset, and is final with what to do without one', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform, { max_attempts: 4 })
  const waiting = await sendUntilRefused(platform, id, '!refuse 400 Your credit balance is too low, resets in 3 hours')
  assert.match(
    reasonText(waiting),
    /^parked, next try at \d\d:\d\d UTC: the quota or credit .* is used up \(quota_exhausted/,
  )
  assert.equal(Math.round(waitMinutes(waiting)), 180)
  for (const [text, words] of [
    ['!refuse 400 Your credit balance is too low', /is used up: add credit, .* then replay this message \(quota_/],
    ['!refuse 400 Your credit balance is too low, resets in 70 hours', /is used up, for another 70 h: add credit/],
  ] as const) {
    const task = await waitForFinalTask(platform, id, await sendWithoutWaiting(platform, id, text))
    assert.equal(task.status.state, 'TASK_STATE_FAILED')
    assert.match(reasonText(task), words)
  }
})

test('RT-6 a program that tells its owner to log in is tried once', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const id = await agent(platform, { max_attempts: 4 })
  const text = '!refuse 401 OAuth token has expired. Please run /login · API Error: 401'
  const task = await waitForFinalTask(platform, id, await sendWithoutWaiting(platform, id, text))
  assert.match(reasonText(task), /could not log in/)
  const [dead] = (await platform.request('GET', `/workspaces/${id}/dead-letters`)).body.dead_letters
  assert.equal(dead.failures, 1)
  const { out } = await runCommand(['explain', task.id], { env: { MOLECULE_HOME: platform.dataDir } })
  assert.match(out, /OAuth token has expired\. run "claude" and log in/, 'the owner has no /login here')
})

test('RT-14 CN-3 a bridge follows the same rule, with the patience of its workspace', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const more = { max_attempts: 1, runtime_config: { rate_limit_patience: '20s' } }
  const workspace = await createExternalWorkspace(platform, more)
  const args = ['--backend', 'claude-code', '--backend-opt', `bin=${bin}`, '--backend-opt', 'mode=oneshot']
  const bridge = await startBridge(t, {
    url: platform.url,
    workspace,
    home: temporaryHome(t),
    args,
    env: CLAUDE_LOGGED_IN,
  })
  const task = await sendUntilRefused(platform, workspace.id, '!refuse-once 429 API Error: 429 on a bridge')
  assert.match(reasonText(task), /^parked, next try at /)
  await bridge.waitForOutput(/parked for 20 s: the model provider's rate limit is reached/)
  const { status, status_reason: reason } = await getWorkspace(platform, workspace.id)
  assert.deepEqual([status, /^a message waits: parked, next try at /.test(reason)], ['degraded', true], reason)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, task.id)), 'answered after all')
})
