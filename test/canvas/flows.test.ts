/** From the login link to the first answer, new workspaces, and what needs a person. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { openPage } from './browser.ts'

function makeFolder(t: TestContext, ...names: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-canvas-'))
  for (const name of names) mkdirSync(join(folder, name))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

test('CV-3 CV-2 PL-11 the first run: one click makes a workspace in the folder that was typed, and its chat answers', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = makeFolder(t, 'shop')
  const page = await openPage(t, platform)
  await page.getByRole('heading', { name: 'Welcome. Who should start?' }).waitFor()
  const field = page.getByRole('textbox', { name: 'Folder to work in' })
  await field.fill(join(folder, 'shopp'))
  await page.getByText('This folder does not exist.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Start Try without an agent' }).isDisabled(), true)
  await page.getByRole('button', { name: join(folder, 'shop') }).click()
  await page.getByRole('button', { name: 'Start Try without an agent' }).click()
  const panel = page.getByRole('complementary', { name: 'shop' })
  await panel.getByRole('textbox', { name: 'Message shop' }).fill('hello there')
  await page.keyboard.press('Enter')
  const exchange = panel.getByRole('article', { name: 'Message of admin' })
  await exchange.locator('[data-state=answered]').waitFor()
  assert.equal(await exchange.getByText('hello there').count(), 2, 'the message and the answer of the mock')
  const { body } = await platform.request('GET', '/workspaces')
  const made = body.workspaces.map(({ name, runtime, working_dir }: Record<string, string>) => [
    ...[name, runtime, working_dir],
  ])
  assert.deepEqual(made, [['shop', 'mock', join(folder, 'shop')]])
})

test('CV-3 a member sees no way to make the first workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const page = await openPage(t, platform, { role: 'member' })
  await page.getByText('An admin makes the first one').waitFor()
  assert.equal(await page.getByRole('button', { name: /Start|New workspace/ }).count(), 0)
})

test('CV-3 PL-11 a new workspace by the form: folder picker, parent, a taken name and a missing command are said at their field', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = makeFolder(t, 'docs')
  const { body: lead } = await platform.request('POST', '/workspaces', { name: 'Conductor', runtime: 'mock' })
  const page = await openPage(t, platform, { hash: '#/new' })
  const dialog = page.getByRole('dialog', { name: 'New workspace' })
  await dialog.getByRole('radio', { name: /A shell command/ }).check()
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Conductor')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('There is a workspace called Conductor already.').waitFor()
  await dialog.getByText('Write the command that answers messages.').waitFor()
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Shell')
  await dialog.getByRole('textbox', { name: 'Command' }).fill('cat')
  await dialog.getByRole('combobox', { name: 'Parent' }).selectOption('Conductor')
  await dialog.getByRole('textbox', { name: 'Folder' }).fill(folder)
  await dialog.getByRole('button', { name: 'Choose…' }).click()
  const picker = page.getByRole('dialog', { name: 'Choose a folder' })
  await picker.getByRole('button', { name: 'docs' }).click()
  await picker.getByText('No folder in here').waitFor()
  await picker.getByRole('button', { name: 'Use this folder' }).click()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('complementary', { name: 'Shell' }).waitFor()
  const { body } = await platform.request('GET', '/workspaces')
  const made = body.workspaces.find(({ name }: { name: string }) => name === 'Shell')
  assert.deepEqual(
    [made.runtime, made.parent_id, made.working_dir, made.runtime_config.cmd],
    ['exec', lead.id, join(folder, 'docs'), 'cat'],
  )
})

test('CV-6 GW-9 PL-24 "needs you": a failed message is replayed, a permission is always allowed; count and title follow', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const create = async (workspace: object) =>
    (await platform.request('POST', '/workspaces', workspace)).body.id as string
  const flag = join(makeFolder(t), 'mended')
  const cmd = `test -e ${flag} && echo all is well`
  const watch = await create({ name: 'Night watch', runtime: 'exec', max_attempts: 1, runtime_config: { cmd } })
  const ada = await create({ name: 'Ada', runtime: 'claude-code', runtime_config: { bin } })
  await platform.send(watch, 'check the backups')
  await platform.send(ada, '!ask npm run release -- --tag next')
  const page = await openPage(t, platform)
  await page.getByRole('button', { name: '2 need you' }).click()
  await waitUntil(async () => (await page.title()) === '(2) Molecule', 'the count is in the title')
  const failed = page.getByRole('article', { name: 'A message to Night watch failed' })
  await failed.getByText('check the backups').waitFor()
  mkdirSync(flag)
  await failed.getByRole('button', { name: 'Replay' }).click()
  await failed.waitFor({ state: 'detached' })
  const asked = page.getByRole('article', { name: 'Ada wants to run a command' })
  await asked.getByText('npm run release -- --tag next', { exact: true }).first().waitFor()
  await asked.getByRole('button', { name: /^Always allow/ }).click()
  await page.getByText('Nothing needs you').first().waitFor()
  await waitUntil(async () => (await page.title()) === 'Molecule', 'the title has no count')
  const { body } = await platform.request('GET', `/workspaces/${ada}/rules`)
  assert.deepEqual(
    body.rules.map(({ tool, pattern }: Record<string, string>) => [tool, pattern]),
    [['Bash', 'npm run release -- --tag next']],
  )
})

test('CV-5 Ctrl-K finds a workspace by a part of its name, and Enter opens its chat', async (t) => {
  const platform = await startPlatformFor(t)
  for (const name of ['Conductor', 'Reviewer']) await platform.request('POST', '/workspaces', { name, runtime: 'mock' })
  const page = await openPage(t, platform)
  await page.getByText('Reviewer').waitFor()
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Find a workspace or an action' })
  await field.fill('revi')
  await page
    .getByRole('option', { name: /Reviewer/ })
    .first()
    .waitFor()
  await field.press('Enter')
  await page.getByRole('complementary', { name: 'Reviewer' }).waitFor()
  await page.keyboard.press('Control+k')
  await field.fill('no such thing')
  await page.getByText('Nothing matches').waitFor()
})
