/** The tabs of the side panel, in a real browser on a real platform. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Task } from '../../src/protocol/a2a.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { type PlatformUnderTest, startPlatformFor, waitForFinalTask } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'
import { openPage } from './browser.ts'

const make = async (platform: PlatformUnderTest, workspace: object): Promise<string> => {
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock', ...workspace })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

const auth = ({ token }: PlatformUnderTest) => ({ Authorization: `Bearer ${token}` })
const fileUrl = ({ url }: PlatformUnderTest, id: string, path: string) => `${url}/workspaces/${id}/files/${path}`
const readFile = async (platform: PlatformUnderTest, id: string, path: string) =>
  (await fetch(fileUrl(platform, id, path), { headers: auth(platform) })).text()

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
  await rows.nth(2).waitFor()
  assert.match((await rows.nth(1).textContent()) ?? '', /Level 0:.*Conductor.*Ship 2\.4.*answered/)
  assert.match((await rows.nth(2).textContent()) ?? '', /Level 1:.*Scout.*Which lock\?.*answered.*unknown/)
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

test('CV-3 config.yaml shows an error at its line, is saved when it is right, and a change on the disk is not overwritten', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const editor = section(page, 'config.yaml')
  const area = editor.getByRole('textbox', { name: 'config.yaml' })
  await area.waitFor()
  const good = await area.inputValue()
  const lines = good.trimEnd().split('\n').length
  await area.fill(`${good.trimEnd()}\nruntime_config:\n  delay: 5 minutes\n`)
  await editor.getByText(`1 error, line ${lines + 2}`).waitFor()
  await editor.locator(`[data-problem-line="${lines + 2}"]`).waitFor()
  await editor.getByRole('button', { name: new RegExp(`^Line ${lines + 2}: .*delay`) }).waitFor()
  assert.ok(await editor.getByRole('button', { name: 'Save' }).isDisabled())
  await area.fill(good.replace(/^name: .*$/m, 'name: Ada Lovelace'))
  await editor.getByRole('button', { name: 'Save' }).click()
  await editor.getByText('no restart is needed').waitFor()
  await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
  await area.fill(`${await area.inputValue()}# mine\n`)
  const theirs = `${(await readFile(platform, id, 'config.yaml')).trimEnd()}\n# theirs\n`
  await fetch(fileUrl(platform, id, 'config.yaml'), { method: 'PUT', body: theirs, headers: auth(platform) })
  await editor.getByText('changed on the disk while you edited it').waitFor()
  await editor.getByRole('button', { name: 'Take that version' }).click()
  await waitUntil(async () => (await area.inputValue()).endsWith('# theirs\n'))
  assert.match(await readFile(platform, id, 'config.yaml'), /# theirs\n$/)
})

test('CV-3 CV-12 what is not saved stays over a tab, another workspace, Escape and a reload, is marked, and goes when it is saved', async (t) => {
  const platform = await startPlatformFor(t)
  const [ada, bea] = [await make(platform, {}), await make(platform, { name: 'Bea' })]
  const page = await openPage(t, platform, { hash: `#/w/${ada}/config` })
  const area = page.getByRole('textbox', { name: 'system-prompt.md' })
  await area.fill('You are Ada.')
  const goTo = (hash: string) => page.evaluate(`location.assign(${JSON.stringify(hash)})`)
  const marked = page.getByRole('tab', { name: 'Config (not saved yet)' })
  await marked.waitFor()
  await page.getByRole('tab', { name: 'Details' }).click()
  await goTo(`#/w/${bea}/config`)
  await page.getByRole('complementary', { name: 'Bea' }).waitFor()
  await area.waitFor()
  assert.deepEqual([await area.inputValue(), await marked.count()], ['', 0])
  await goTo(`#/w/${ada}/config`)
  await marked.waitFor()
  assert.equal(await area.inputValue(), 'You are Ada.')
  // The first Escape leaves the field, the next one closes the panel.
  await area.press('Escape')
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Ada' }).waitFor({ state: 'detached' })
  await page.reload()
  await goTo(`#/w/${ada}/config`)
  const prompt = section(page, 'system-prompt.md')
  await prompt.getByText('Not saved yet').waitFor()
  assert.equal(await area.inputValue(), 'You are Ada.')
  // Somebody else saves meanwhile: the page asks, also after the reload.
  await fetch(fileUrl(platform, ada, 'system-prompt.md'), { method: 'PUT', body: 'Theirs.', headers: auth(platform) })
  await prompt.getByText('changed on the disk while you edited it').waitFor()
  await prompt.getByRole('button', { name: 'Save mine over it' }).click()
  await page.getByRole('tab', { name: 'Config', exact: true }).waitFor()
  assert.equal(await readFile(platform, ada, 'system-prompt.md'), 'You are Ada.')
})

test('CV-12 a prompt that is too long for the storage of the browser is kept while the page lives, and the page asks before it goes', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const area = page.getByRole('textbox', { name: 'system-prompt.md' })
  const long = 'You are Ada. '.repeat(10_000)
  await area.fill(long)
  await page.getByRole('tab', { name: 'Chat' }).click()
  await page.getByRole('textbox', { name: 'Message Ada' }).fill(long)
  await page.getByRole('tab', { name: 'Config (not saved yet)' }).click()
  assert.equal(await area.inputValue(), long)
  await page.getByRole('tab', { name: 'Chat' }).click()
  assert.equal(await page.getByRole('textbox', { name: 'Message Ada' }).inputValue(), long)
  const asked = page.waitForEvent('dialog')
  const reload = page.evaluate('location.reload()').catch(() => undefined)
  const dialog = await asked
  assert.equal(dialog.type(), 'beforeunload')
  await dialog.dismiss()
  await reload
  // What is sent or taken back is not asked for.
  await page.getByRole('textbox', { name: 'Message Ada' }).fill('')
  await page.getByRole('tab', { name: 'Config (not saved yet)' }).click()
  await section(page, 'system-prompt.md').getByRole('button', { name: 'Undo changes' }).click()
  await page.getByRole('tab', { name: 'Config', exact: true }).waitFor()
  page.once('dialog', () => assert.fail('it asks for nothing'))
  await page.reload()
})

test('CV-12 the text of a dialog and of a new memory stays until it is sent or cancelled', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const open = () => section(page, 'Schedules').getByRole('button', { name: 'New schedule' }).click()
  const dialog = page.getByRole('dialog', { name: 'New schedule' })
  const message = dialog.getByLabel('Message')
  await open()
  await message.fill('Check the backups')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  assert.equal(await page.getByRole('complementary', { name: 'Ada' }).count(), 1, 'Escape closes the topmost only')
  await page.reload()
  await page.getByRole('tab', { name: 'Config (not saved yet)' }).waitFor()
  await open()
  assert.equal(await message.inputValue(), 'Check the backups')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await open()
  assert.equal(await message.inputValue(), '')
  await page.keyboard.press('Escape')
  await page.getByRole('tab', { name: 'Memory' }).click()
  await page.getByLabel('Add a memory').fill('Mira likes short answers.')
  await page.getByRole('tab', { name: 'Details' }).click()
  await page.getByRole('tab', { name: 'Memory (not saved yet)' }).click()
  assert.equal(await page.getByLabel('Add a memory').inputValue(), 'Mira likes short answers.')
})

test('CV-3 folder and permission are changed in the config, and count from the next turn on', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const id = await make(platform, { runtime: 'claude-code', runtime_config: { bin } })
  const folder = temporaryDir(t)
  const page = await openPage(t, platform, { hash: `#/w/${id}/details` })
  await page.evaluate(`location.assign('#/w/${id}/config')`)
  await section(page, 'Folder').getByRole('button', { name: 'Change…' }).click()
  const dialog = page.getByRole('dialog')
  const field = dialog.getByRole('textbox', { name: 'Folder' })
  await field.fill(join(folder, 'missing'))
  await dialog.getByRole('alert').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Use this folder' }).isDisabled())
  // A refusal belongs to the folder that was sent, not to the next one that is typed.
  const refusal = { error: { code: 'invalid_request', message: 'the folder is in use' } }
  await page.route(`**/workspaces/${id}`, (route) => route.fulfill({ status: 400, json: refusal }), { times: 1 })
  await field.fill(tmpdir())
  await dialog.getByRole('button', { name: 'Use this folder' }).click()
  await dialog.getByRole('alert').getByText('The folder is in use.').waitFor()
  await field.fill(folder)
  await dialog.getByRole('alert').waitFor({ state: 'detached' })
  await dialog.getByRole('button', { name: 'Use this folder' }).click()
  await section(page, 'Folder').getByText(folder).waitFor()
  const may = section(page, 'What it may do')
  await may.getByText('Asks before it acts').waitFor()
  await may.getByRole('button', { name: 'Change…' }).click()
  await dialog.getByRole('radio', { name: /Only allowed tools/ }).check()
  await dialog.getByRole('textbox', { name: 'Allowed tools' }).fill('Read')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await may.getByText('Acts within its tools').waitFor()
  const { body } = await platform.request('GET', `/workspaces/${id}`)
  assert.deepEqual(
    [body.working_dir, body.permission, body.runtime_config.allowed_tools],
    [folder, 'allowed_tools', 'Read'],
  )
  await page.getByRole('tab', { name: 'Details' }).click()
  await page.getByRole('link', { name: 'Change it in Config' }).click()
  await may.getByRole('button', { name: 'Change…' }).click()
  assert.ok(await dialog.getByRole('radio', { name: /Only allowed tools/ }).isChecked())
})

test('CV-3 system-prompt.md is written where there was none', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await make(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${id}/config` })
  const editor = section(page, 'system-prompt.md')
  await editor.getByRole('textbox').fill('# You are Ada\n')
  await editor.getByRole('button', { name: 'Save' }).click()
  await editor.getByText('Used from the next message on').waitFor()
  assert.equal(await readFile(platform, id, 'system-prompt.md'), '# You are Ada\n')
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
  const cells = await page.locator('[data-usage=days] tbody tr').first().locator('td').allInnerTexts()
  const [day] = body.days
  assert.deepEqual(cells, [
    String(day.turns),
    (day.input_tokens + day.output_tokens).toLocaleString('en-US'),
    day.cost_usd === null ? 'unknown' : `$${day.cost_usd.toFixed(2)}`,
  ])
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
  const rotated = (await page.locator('[data-secret]').textContent()) ?? ''
  assert.notEqual(rotated, secret)
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
