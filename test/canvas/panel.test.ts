/** The tabs of the side panel, in a real browser on a real platform. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Task } from '../../src/protocol/a2a.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { type PlatformUnderTest, startPlatformFor, waitForFinalTask } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { openPage, waitForValue } from './browser.ts'

const make = async (platform: PlatformUnderTest, workspace: object): Promise<string> => {
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock', ...workspace })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

const section = (page: Page, name: string) => page.getByRole('region', { name })

test('CV-4 activity shows a turn as a timeline with its tools and its story, and a new turn appears live', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const id = await make(platform, { runtime: 'claude-code', runtime_config: { bin } })
  await platform.send(id, '!tool')
  const page = await openPage(t, platform, { hash: `#/w/${id}/activity` })
  const turns = page.getByRole('list', { name: 'Turns' })
  await turns.getByText('Used ping_tool of lab').waitFor()
  await page.getByRole('complementary', { name: 'What happened' }).getByText('sent this message through').waitFor()
  const { id: taskId } = await platform.send(id, 'and a second one')
  await turns.getByRole('button', { name: 'and a second one' }).click()
  await page.getByRole('complementary', { name: 'What happened' }).getByText(`bin/molecule explain ${taskId}`).waitFor()
  await page.getByRole('button', { name: /^Tools/ }).click()
  await turns.getByRole('button', { name: 'and a second one' }).waitFor({ state: 'detached' })
})

test('CV-4 CV-2 a page has one socket, over which each view follows its log while it is open', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  await platform.send(id, 'first')
  const page = await openPage(t, platform)
  let sockets = 0
  const sent: { subscribe: object; unsubscribe?: string[] }[] = []
  page.on('websocket', (socket) => {
    sockets++
    socket.on('framesent', ({ payload }) => sent.push(JSON.parse(String(payload))))
  })
  await page.evaluate(`location.assign('#/w/${id}/chat')`)
  await page.reload()
  await page.getByText('echo: first').waitFor()
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  await box.fill('second')
  await box.press('Enter')
  await page.getByText('echo: second').waitFor()
  await page.getByRole('tab', { name: 'Activity' }).click()
  const turns = page.getByRole('list', { name: 'Turns' })
  await turns.getByRole('button', { name: 'second' }).waitFor()
  await platform.send(id, 'third')
  await turns.getByText('echo: third').waitFor()
  await waitUntil(() => sent.some(({ unsubscribe }) => unsubscribe?.includes(id)))
  assert.equal(sockets, 1)
  assert.equal(sent.filter(({ subscribe }) => Object.hasOwn(subscribe, id)).length, 2, JSON.stringify(sent))
})

test('CV-4 TW-3 delegations are a tree with state and time, and lead to the workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const scout = await make(platform, { name: 'Scout', runtime_config: { usage: 'true' } })
  const parent = await platform.exec('a2a delegate Scout "Which lock?"', {
    name: 'Conductor',
    runtime_config: { pass_meta: 'true' },
  })
  const page = await openPage(t, platform, { hash: `#/w/${parent}/delegations` })
  await page.getByText('No delegations yet').waitFor()
  await platform.send(parent, 'Ship 2.4')
  const tree = page.getByRole('article', { name: 'Ship 2.4' })
  const rows = tree.getByRole('row')
  await rows
    .nth(1)
    .filter({ hasText: /Level 0:.*Conductor.*Ship 2\.4.*answered/ })
    .waitFor()
  await rows
    .nth(2)
    .filter({ hasText: /Level 1:.*Scout.*Which lock\?.*answered.*unknown/ })
    .waitFor()
  await tree.getByRole('link', { name: /Scout/ }).click()
  await page.waitForURL(new RegExp(`#/w/${scout}/activity$`))
})

test('CV-4 a memory is added, found, forgotten and brought back by Undo', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/memory` })
  await page.getByText('Ada remembers nothing yet').waitFor()
  for (const text of ['The suite needs PostgreSQL 16.', 'Mira likes short answers.']) {
    await page.getByLabel('Add a memory').fill(text)
    await page.getByRole('button', { name: 'Remember' }).click()
    await page.getByRole('listitem').filter({ hasText: text }).waitFor()
  }
  await page.getByLabel('Search').fill('postgresql')
  await page.getByText('Mira likes short answers.').waitFor({ state: 'detached' })
  const found = page.getByRole('listitem').filter({ hasText: 'PostgreSQL 16' })
  await found.getByRole('button', { name: 'Forget' }).click()
  await found.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await found.waitFor()
  const { body } = await platform.request('GET', `/workspaces/${id}/memories?query=postgresql`)
  assert.deepEqual(
    body.memories.map(({ text }: { text: string }) => text),
    ['The suite needs PostgreSQL 16.'],
  )
})

test('PL-24 a rule is listed and revoked, and the agent asks again', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const id = await make(platform, { runtime: 'claude-code', runtime_config: { bin } })
  const task = await platform.send(id, '!ask npm test')
  const [pending] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
  await platform.request('POST', `/pending/${pending.id}`, { decision: 'allow', always: true })
  await waitForFinalTask(platform, id, task.id)
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const rules = section(page, 'Always allowed')
  await rules.getByText('npm test', { exact: true }).waitFor()
  await rules.getByText('Bash, exact').waitFor()
  await rules.getByRole('button', { name: 'Revoke the rule for npm test' }).click()
  await rules.getByText('Nothing is always allowed').waitFor()
  assert.equal((await platform.send(id, '!ask npm test')).status.state, 'TASK_STATE_AUTH_REQUIRED')
  // On the page the way out is on the page: no command for a terminal.
  await page.getByRole('tab', { name: 'Details' }).click()
  await page.getByText('A turn waits for your permission.', { exact: true }).waitFor()
})

test('SC-1 CV-4 a schedule is made, run, paused and removed', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, { runtime_config: { reply: 'all backups are there' } })
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const schedules = section(page, 'Schedules')
  await schedules.getByRole('button', { name: 'New schedule' }).click()
  const dialog = page.getByRole('dialog', { name: 'New schedule' })
  await dialog.getByLabel('Message').fill('Check the backups')
  await dialog.getByLabel('When').fill('every now and then')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByRole('button', { name: 'Every day at 9' }).click()
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.waitFor({ state: 'detached' })
  await schedules.getByRole('button', { name: 'Run now Check the backups' }).click()
  await schedules.getByText('all backups are there').waitFor()
  const choose = async (name: string) => {
    await schedules.getByRole('button', { name: 'Actions for Check the backups' }).click()
    await page.getByRole('menuitem', { name }).click()
  }
  await choose('Pause')
  await schedules.getByText('paused', { exact: true }).waitFor()
  await choose('Remove')
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await schedules.getByText('No schedules').waitFor()
})

test('CV-4 each label of the usage chart is whole, also of amounts far below a cent', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform)
  await page.route('**/usage?*', async (route) => {
    const answer = await route.fetch()
    const body = await answer.json()
    const day = new Date().toISOString().slice(0, 10)
    const sum = {
      turns: 1,
      unknown_turns: 0,
      unknown_cost_turns: 0,
      input_tokens: 9,
      output_tokens: 1,
      cost_usd: 0.00025,
    }
    await route.fulfill({ response: answer, json: { ...body, total: sum, days: [{ day, ...sum }] } })
  })
  await page.evaluate(`location.assign('#/w/${id}/usage')`)
  await page.getByText('$0.00015').waitFor()
  const cut = await page.locator('figure svg').evaluate((svg) => {
    const { left, right, top, bottom } = svg.getBoundingClientRect()
    return [...svg.querySelectorAll('text')]
      .map((text) => [text.textContent, text.getBoundingClientRect()] as const)
      .filter(([, box]) => box.left < left || box.right > right || box.top < top || box.bottom > bottom)
      .map(([label]) => label)
  })
  assert.deepEqual(cut, [])
})

test('RT-13 the table of the usage chart has the numbers of the API, and unknown is unknown', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, { runtime_config: { usage: 'true' } })
  for (const text of ['one', 'two', 'three']) await platform.send(id, text)
  const { body } = await platform.request('GET', `/workspaces/${id}/usage?days=14`)
  const page = await openPage(t, platform, { hash: `#/w/${id}/usage` })
  await page.getByText('Show as a table').click()
  const cells = page.locator('[data-usage=days] tbody tr').first().locator('td')
  const [day] = body.days
  const expected = [
    String(day.turns),
    (day.input_tokens + day.output_tokens).toLocaleString('en-US'),
    day.cost_usd === null ? 'unknown' : `$${day.cost_usd.toFixed(2)}`,
  ]
  await waitForValue(() => cells.allInnerTexts(), expected)
  await section(page, 'By conversation').getByRole('rowheader', { name: 'one' }).waitFor()
  await section(page, 'By workspace').getByRole('rowheader', { name: 'Ada' }).waitFor()
})

test('CV-4 a failed message is run again and answered, and another is discarded', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, { max_attempts: 1, runtime_config: { fail: 'no space left', fail_times: '2' } })
  for (const text of ['Check the backups', 'Clean up']) await platform.send(id, text)
  const page = await openPage(t, platform, { hash: `#/w/${id}/details` })
  const failed = section(page, 'Failed messages')
  const lettersLeft = async () =>
    (await platform.request('GET', `/workspaces/${id}/dead-letters`)).body.dead_letters.length
  await failed.getByRole('button', { name: 'Run again “Check the backups”' }).click()
  await page.getByText('“Check the backups” runs again').waitFor()
  await failed.getByText('Check the backups', { exact: true }).waitFor({ state: 'detached' })
  await waitUntil(async () => {
    const { tasks } = (await platform.rpc(id, 'ListTasks', {})).body.result
    return tasks.some(({ status }: Task) => status.state === 'TASK_STATE_COMPLETED')
  })
  assert.equal(await lettersLeft(), 1)
  await failed.getByRole('button', { name: 'Discard “Clean up”' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click()
  await failed.getByRole('button', { name: 'Discard “Clean up”' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
  await waitUntil(async () => (await lettersLeft()) === 0)
})

test('PL-14 CV-4 an agent of another machine connects to the public URL, also when the page was opened here', async (t) => {
  const platform = await startPlatformFor(t, { args: ['--public-url', 'https://molecule.example'] })
  const id = await make(platform, { name: 'Laptop', runtime: 'external' })
  const page = await openPage(t, platform, { hash: `#/w/${id}/details` })
  await page.getByText(`molecule connect ${id} --api-url https://molecule.example`).waitFor()
  await page.getByText(`https://molecule.example/workspaces/${id}/a2a`).waitFor()
})

test('CV-4 PL-12 a token is made with its secret shown once, rotated and revoked', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, { name: 'Laptop', runtime: 'external' })
  const page = await openPage(t, platform, { hash: `#/w/${id}/details` })
  await page.getByText(`bin/molecule connect ${id} --api-url ${platform.url}`).waitFor()
  await page.getByText('127.0.0.1 is this machine itself').waitFor()
  const tokens = section(page, 'Access tokens')
  await tokens.getByRole('button', { name: 'New token' }).click()
  await page.getByLabel('Name').fill('Bridge on the build machine')
  await page.getByRole('button', { name: 'Make it' }).click()
  const secret = (await page.locator('[data-secret]').textContent()) ?? ''
  const statusOf = async (token: string) =>
    (await fetch(`${platform.url}/me`, { headers: { Authorization: `Bearer ${token}` } })).status
  assert.equal(await statusOf(secret), 200)
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await tokens.getByRole('button', { name: 'Rotate Bridge on the build machine' }).click()
  await page.locator('[data-secret]').filter({ hasNotText: secret }).waitFor()
  const rotated = (await page.locator('[data-secret]').textContent()) ?? ''
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await tokens.getByRole('button', { name: 'Revoke Bridge on the build machine' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await tokens.getByTitle('Bridge on the build machine').waitFor({ state: 'detached' })
  assert.equal(await statusOf(rotated), 401)
})

test('CV-3 a workspace is paused, resumed and deleted from its details', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/details` })
  const panel = page.getByRole('complementary', { name: 'Ada' })
  await panel.getByRole('button', { name: 'Pause' }).click()
  await panel.getByRole('button', { name: 'Resume' }).click()
  await panel.getByRole('button', { name: 'Pause' }).waitFor()
  await panel.getByRole('button', { name: 'Delete…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete Ada?' })
  await dialog.getByRole('button', { name: 'Delete Ada' }).click()
  await waitUntil(async () => (await platform.request('GET', `/workspaces/${id}`)).status === 404)
  await panel.waitFor({ state: 'detached' })
})

test('CV-4 a viewer sees no button that would be refused', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, { max_attempts: 1, runtime_config: { fail: 'no space left' } })
  await platform.send(id, 'Check the backups')
  await platform.request('POST', `/workspaces/${id}/schedules`, { cron: '0 9 * * *', text: 'Check the backups' })
  const page = await openPage(t, platform, { role: 'viewer', hash: `#/w/${id}/details` })
  await section(page, 'Failed messages').getByText('Check the backups').waitFor()
  const panel = page.getByRole('complementary', { name: 'Ada' })
  for (const name of [/Run again/, /Discard/, 'Pause', 'Restart', 'Delete…', 'New token']) {
    assert.equal(await panel.getByRole('button', { name }).count(), 0, String(name))
  }
  assert.equal(await panel.getByRole('tab', { name: 'Memory' }).count(), 0)
  await panel.getByRole('tab', { name: 'Config' }).click()
  await section(page, 'Schedules').getByText('Check the backups').waitFor()
  assert.equal(await section(page, 'Schedules').getByRole('button').count(), 0)
  assert.equal(await panel.getByRole('textbox').count(), 0)
})
