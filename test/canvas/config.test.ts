/** The tab Config in a real browser: files, folder, permission, and what is not saved yet. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'
import { openPage, waitForValue } from './browser.ts'

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
  await waitForValue(() => editor.getByRole('button', { name: 'Save' }).isDisabled(), true)
  // A setting at the wrong place is no error of the file, and would be believed to be in force.
  await area.fill(`${good.trimEnd()}\nmax_attempts: 1\n`)
  await editor
    .getByText('The key "max_attempts" is ignored at this place; settings stand under runtime_config.')
    .waitFor()
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
  await waitForValue(async () => [await area.inputValue(), await marked.count()], ['', 0])
  await goTo(`#/w/${ada}/config`)
  await marked.waitFor()
  await waitForValue(() => area.inputValue(), 'You are Ada.')
  // The first Escape leaves the field, the next one closes the panel.
  await area.press('Escape')
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Ada' }).waitFor({ state: 'detached' })
  await page.reload()
  await goTo(`#/w/${ada}/config`)
  const prompt = section(page, 'system-prompt.md')
  await prompt.getByText('Not saved yet').waitFor()
  await waitForValue(() => area.inputValue(), 'You are Ada.')
  // Another person saves meanwhile: the page asks, also after the reload.
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
  await waitForValue(() => area.inputValue(), long)
  await page.getByRole('tab', { name: 'Chat' }).click()
  await waitForValue(() => page.getByRole('textbox', { name: 'Message Ada' }).inputValue(), long)
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
  await waitForValue(() => message.inputValue(), 'Check the backups')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await open()
  await waitForValue(() => message.inputValue(), '')
  await page.keyboard.press('Escape')
  await page.getByRole('tab', { name: 'Memory' }).click()
  await page.getByLabel('Add a memory').fill('Mira likes short answers.')
  await page.getByRole('tab', { name: 'Details' }).click()
  await page.getByRole('tab', { name: 'Memory (not saved yet)' }).click()
  await waitForValue(() => page.getByLabel('Add a memory').inputValue(), 'Mira likes short answers.')
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
  await waitForValue(() => dialog.getByRole('button', { name: 'Use this folder' }).isDisabled(), true)
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
  await waitForValue(() => dialog.getByRole('radio', { name: /Only allowed tools/ }).isChecked(), true)
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
