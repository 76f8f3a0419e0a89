/** Budgets on a running platform: a spent budget parks what is left, the owner is asked once, raises it or stops it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCommand } from '../harness/command.ts'
import {
  getTask,
  type PlatformUnderTest,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const WAIT_MS = 110_000

const mockWorkspace = async (platform: PlatformUnderTest, name: string, runtimeConfig: object): Promise<string> => {
  const body = { name, runtime: 'mock', runtime_config: runtimeConfig }
  return (await platform.request('POST', '/workspaces', body)).body.id
}

const molecule = async (platform: PlatformUnderTest, ...argv: string[]) => {
  const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
  const { code, out, err } = await runCommand(argv, { env })
  assert.equal(code, 0, `${argv.join(' ')}: ${out}${err}`)
  return out
}

const asked = async (platform: PlatformUnderTest) => (await platform.request('GET', '/pending')).body.budgets

const states = async (platform: PlatformUnderTest, id: string): Promise<Record<string, number>> => {
  const { tasks } = (await platform.rpc(id, 'ListTasks', { pageSize: 100 })).body.result
  const counts: Record<string, number> = {}
  for (const { status } of tasks) counts[status.state] = (counts[status.state] ?? 0) + 1
  return counts
}

const sendWithBudget = async (platform: PlatformUnderTest, workspace: string, usd: string) =>
  (await molecule(platform, 'agent', 'send', workspace, 'go', '--async', '--max-cost', usd)).trim()

test('TW-10 RT-13 a budget of 1 cent stops a tree of 20 delegations within one turn, survives a kill, and a raise goes on from there', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'molecule-budgets-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  let platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const root = await platform.exec('for n in $(seq 20); do a2a delegate worker "job $n"; done', {
    name: 'root',
    runtime_config: { pass_meta: 'true', timeout: '110s' },
    max_attempts: 1,
  })
  const worker = await mockWorkspace(platform, 'worker', { cost: '0.004', reply: 'did %s' })
  const taskId = await sendWithBudget(platform, 'root', '0.01')
  await waitUntil(async () => (await asked(platform)).length === 1, undefined, WAIT_MS)
  // Three turns cost $0.012: the third one crossed the limit, and the fourth did not begin.
  const spent = { TASK_STATE_COMPLETED: 3, TASK_STATE_WORKING: 1 }
  assert.deepEqual(await states(platform, worker), spent)

  await platform.stop('SIGKILL')
  platform = await startPlatform({ dataDir })
  // The root would run again, to meet its children; its turn costs too, so it waits like the child.
  await waitUntil(async () => (await asked(platform))[0]?.waiting === 2, undefined, WAIT_MS)
  const [ask, ...more] = await asked(platform)
  assert.deepEqual([more, await states(platform, worker)], [[], spent])
  assert.equal(ask.text, 'the budget of this message, $0.01, is spent ($0.012); 2 messages wait')
  assert.deepEqual([ask.task_id, ask.max_cost_usd, ask.waiting], [taskId, 0.01, 2])

  const reason =
    'waiting: the budget of this message, $0.01, is spent ($0.012); the owner is asked to raise it or to stop'
  const [parked] = (await platform.rpc(worker, 'ListTasks', { status: 'TASK_STATE_WORKING' })).body.result.tasks
  assert.equal(reasonText(parked), reason)
  assert.match(await molecule(platform, 'explain', parked.id), new RegExp(reason.replace(/[$().]/g, '\\$&')))
  assert.match(
    await molecule(platform, 'explain', taskId),
    /budget +\$0\.012 of \$0\.01 spent; the owner is asked[\s\S]*delegations \(\$0\.012\):/,
  )
  assert.match(await molecule(platform, 'pending'), new RegExp(`${ask.id} +root .*is spent`))
  const overview = await molecule(platform, 'status')
  assert.match(overview, new RegExp(`root +the budget of this message.*\\n.*pending raise ${ask.id}`))
  assert.match(overview, /worker +degraded/)
  const { activity } = (await platform.request('GET', `/workspaces/${root}/activity?type=budget`)).body
  assert.equal(activity.length, 1)

  const low = await platform.request('POST', `/budgets/${ask.id}`, { decision: 'raise', max_cost_usd: 0.011 })
  assert.deepEqual([low.status, low.body.error.message], [400, '$0.011 is spent already ($0.012); give more'])
  await molecule(platform, 'pending', 'raise', ask.id, '1')
  const ended = await waitForFinalTask(platform, root, taskId)
  const jobs = Array.from({ length: 20 }, (_, index) => `did job ${index + 1}`)
  assert.deepEqual((replyText(ended) ?? '').trim().split('\n'), jobs)
  assert.deepEqual([await states(platform, worker), await asked(platform)], [{ TASK_STATE_COMPLETED: 20 }, []])
  assert.match(
    await molecule(platform, 'explain', taskId),
    /\$0\.08 of \$1\.00 spent.*\n[\s\S]*raised from \$0\.01 to \$1\.00, by/,
  )
})

test('TW-10 a stop cancels what waits and what follows; a turn of unknown cost is named; the turn that waits gets the reason', async (t) => {
  const platform = await startPlatformFor(t)
  const root = await platform.exec(
    'a2a delegate unknown first; for n in 1 2 3; do a2a delegate worker "job $n" 2>&1 || true; done',
    { name: 'root', runtime_config: { pass_meta: 'true', timeout: '110s' }, max_attempts: 1 },
  )
  const worker = await mockWorkspace(platform, 'worker', { cost: '0.02' })
  await mockWorkspace(platform, 'unknown', { usage: 'true' })
  const taskId = await sendWithBudget(platform, 'root', '0.01')
  await waitUntil(async () => (await asked(platform)).length === 1, undefined, WAIT_MS)
  const [ask] = await asked(platform)
  const text = 'the budget of this message, $0.01, is spent (≥ $0.02, 1 turn of unknown cost)'
  assert.equal(ask.text, `${text}; 1 message waits`)
  await molecule(platform, 'pending', 'stop', ask.id)
  const ended = await waitForFinalTask(platform, root, taskId)
  assert.ok(replyText(ended)?.includes(`${text}, and the owner stopped it`), replyText(ended))
  assert.ok(replyText(ended)?.includes('the delegation is refused: its budget is spent, and the owner stopped it'))
  assert.deepEqual(await states(platform, worker), { TASK_STATE_COMPLETED: 1, TASK_STATE_CANCELED: 1 })
  assert.deepEqual(await asked(platform), [])
  const again = await platform.request('POST', `/budgets/${ask.id}`, { decision: 'raise', max_cost_usd: 1 })
  assert.deepEqual([again.status, again.body.error.message], [400, 'this budget was stopped already'])
})

test('TW-10 a delegation can be given less than what is left, and never more', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.exec('a2a delegate --max-cost 0.03 middle go; a2a delegate worker last', {
    name: 'root',
    runtime_config: { pass_meta: 'true', timeout: '110s' },
    max_attempts: 1,
  })
  const middle = await platform.exec('a2a delegate --max-cost 5 worker one; a2a delegate worker two', {
    name: 'middle',
    runtime_config: { pass_meta: 'true', timeout: '110s' },
    max_attempts: 1,
  })
  const worker = await mockWorkspace(platform, 'worker', { cost: '0.03' })
  const taskId = await sendWithBudget(platform, 'root', '0.10')
  await waitUntil(async () => (await asked(platform)).length === 1, undefined, WAIT_MS)
  const [ask] = await asked(platform)
  assert.deepEqual([ask.workspace_id, ask.max_cost_usd], [middle, 0.03])
  const [one] = (await platform.rpc(worker, 'ListTasks', { status: 'TASK_STATE_COMPLETED' })).body.result.tasks
  const sent = (await getTask(platform, worker, one.id)).history?.[0]?.metadata?.['molecule_delegation']
  assert.deepEqual([sent.cost_left_usd, sent.max_cost_usd], [0.03, 5])
  await molecule(platform, 'pending', 'raise', ask.id, '5')
  // $0.03, $0.06, $0.09: less than the budget of the root.
  const rootId = (await platform.request('GET', `/messages/${taskId}/story`)).body.workspace_id
  assert.equal((await waitForFinalTask(platform, rootId, taskId)).status.state, 'TASK_STATE_COMPLETED')
  assert.deepEqual(await states(platform, worker), { TASK_STATE_COMPLETED: 3 })
})

test('TW-10 the budget of a day parks further messages of the workspace; a raise of today lets them go on', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await mockWorkspace(platform, 'daily', { cost: '0.5', max_cost_usd_per_day: 1 })
  await platform.send(id, 'one')
  await platform.send(id, 'two')
  const waiting = await sendWithoutWaiting(platform, id, 'three')
  await waitUntil(async () => (await asked(platform)).length === 1, undefined, WAIT_MS)
  const [ask] = await asked(platform)
  assert.equal(ask.text, "today's budget of this workspace, $1.00, is spent ($1.00); 1 message waits")
  assert.match(reasonText(await getTask(platform, id, waiting)), /the owner is asked.*midnight UTC/)
  await molecule(platform, 'pending', 'raise', ask.id, '1.50')
  assert.equal(replyText(await waitForFinalTask(platform, id, waiting)), 'echo: three')
  const later = [await sendWithoutWaiting(platform, id, 'four'), await sendWithoutWaiting(platform, id, 'five')]
  await waitUntil(async () => (await asked(platform))[0]?.waiting === 2, undefined, WAIT_MS)
  await molecule(platform, 'pending', 'stop', ask.id)
  for (const taskId of later) {
    assert.equal((await waitForFinalTask(platform, id, taskId)).status.state, 'TASK_STATE_CANCELED')
  }
  const { status } = await platform.request('PATCH', `/workspaces/${id}`, {
    runtime_config: { max_cost_usd_per_day: 3 },
  })
  assert.equal(status, 200)
  assert.equal(replyText(await platform.send(id, 'six')), 'echo: six')
  const bad = await platform.request('PATCH', `/workspaces/${id}`, { runtime_config: { max_cost_usd_per_day: -1 } })
  assert.deepEqual([bad.status, /max_cost_usd_per_day/.test(bad.body.error.message)], [400, true])
})

test('TW-10 RT-13 a PATCH that raises the budget of a day, or the concurrency, lets what waits for it go on', async (t) => {
  const platform = await startPlatformFor(t)
  const patch = async (id: string, body: object) =>
    assert.equal((await platform.request('PATCH', `/workspaces/${id}`, body)).status, 200)
  const daily = await mockWorkspace(platform, 'daily', { cost: '1', max_cost_usd_per_day: 1 })
  await platform.send(daily, 'one')
  const unpaid = await sendWithoutWaiting(platform, daily, 'two')
  await waitUntil(async () => (await asked(platform)).length === 1, undefined, WAIT_MS)
  await patch(daily, { runtime_config: { max_cost_usd_per_day: 5 } })
  assert.equal(replyText(await waitForFinalTask(platform, daily, unpaid)), 'echo: two')
  assert.deepEqual(await asked(platform), [])
  const narrow = await platform.exec('read line; [ "$line" = stay ] && sleep 1000; echo "did $line"', {
    name: 'narrow',
  })
  await sendWithoutWaiting(platform, narrow, 'stay')
  const queued = await sendWithoutWaiting(platform, narrow, 'go')
  await waitUntil(async () => /waiting for a free slot/.test(reasonText(await getTask(platform, narrow, queued))))
  await patch(narrow, { max_concurrent_tasks: 2 })
  assert.equal(replyText(await waitForFinalTask(platform, narrow, queued)), 'did go\n')
})

test('TW-10 a budget that is no amount is refused, not ignored', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await mockWorkspace(platform, 'any', {})
  for (const max of ['0.5', -1, 0, 1e9]) {
    const message = { messageId: `m${max}`, role: 'ROLE_USER', parts: [{ text: 'x' }] }
    const metadata = { molecule_delegation: { max_cost_usd: max } }
    const { body } = await platform.rpc(id, 'SendMessage', { message: { ...message, metadata } })
    assert.match(body.error.message, /max_cost_usd must be a number above 0/)
  }
})
