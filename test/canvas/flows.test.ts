/** From the login link to the first answer, new workspaces, and what needs a person. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { makeLoginLink, openPage, PHONE, waitForValue } from './browser.ts'

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
  await waitForValue(() => page.getByRole('button', { name: 'Start Try without an agent' }).isDisabled(), true)
  await page.getByRole('button', { name: join(folder, 'shop') }).click()
  await page.getByRole('button', { name: 'Start Try without an agent' }).click()
  const panel = page.getByRole('complementary', { name: 'shop' })
  await panel.getByRole('textbox', { name: 'Message shop' }).fill('hello there')
  await page.keyboard.press('Enter')
  const exchange = panel.getByRole('article', { name: 'Message of admin' })
  await exchange.locator('[data-state=answered]').waitFor()
  // The message and the answer of the mock.
  await waitForValue(() => exchange.getByText('hello there').count(), 2)
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
  // The machine is known by now, so the form comes with the dialog: its name has the focus, not the button that closes it.
  await page.getByRole('button', { name: 'New workspace' }).click()
  await dialog.getByRole('textbox', { name: 'Name' }).waitFor()
  await page.keyboard.type('Typed at once')
  await waitForValue(() => dialog.getByRole('textbox', { name: 'Name' }).inputValue(), 'Typed at once')
  const { body } = await platform.request('GET', '/workspaces')
  const made = body.workspaces.find(({ name }: { name: string }) => name === 'Shell')
  assert.deepEqual(
    [made.runtime, made.parent_id, made.working_dir, made.runtime_config.cmd],
    ['exec', lead.id, join(folder, 'docs'), 'cat'],
  )
})

test('CV-3 the form offers every runtime, keeps the choice while versions arrive, and its buttons stay in view on a phone', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.request('POST', '/workspaces', { name: 'Conductor', runtime: 'mock' })
  const page = await openPage(t, platform, { viewport: { width: 360, height: 640 } })
  let looks = 0
  const codex = { backend: 'codex', program: 'codex', installed: true, warm: true, logged_in: true }
  const gemini = {
    backend: 'gemini',
    program: 'gemini',
    installed: true,
    warm: true,
    logged_in: false,
    remedy: 'run "gemini"',
  }
  const others = ['claude-code', 'opencode', 'hermes', 'openclaw'].map((backend) => ({
    backend,
    program: backend,
    installed: false,
    warm: true,
    logged_in: false,
  }))
  const release = Promise.withResolvers<void>()
  await page.route('**/agents', async (route) => {
    looks += 1
    if (looks === 1) await release.promise
    // The second look changes what would be the order.
    const agents =
      looks === 1
        ? [codex, gemini]
        : [
            { ...codex, logged_in: false },
            { ...gemini, logged_in: true, version: '2.0' },
          ]
    await route.fulfill({
      json: { agents: [...agents.map((agent) => ({ ...(looks > 1 && { version: '1.2' }), ...agent })), ...others] },
    })
  })
  await page.evaluate(`location.assign('#/new')`)
  const dialog = page.getByRole('dialog', { name: 'New workspace' })
  await dialog.waitFor()
  assert.equal(await dialog.getByRole('radio').count(), 0, 'nothing to choose before the machine was looked at')
  release.resolve()
  const option = (name: RegExp) => dialog.getByRole('radio', { name })
  await option(/^Codex/).waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Create' }).isVisible())
  const create = await dialog.getByRole('button', { name: 'Create' }).boundingBox()
  assert.ok(create !== null && create.y + create.height <= 640, 'the button is in view')
  const [footer, whole] = [await dialog.locator('form footer').boundingBox(), await dialog.boundingBox()]
  const below = (whole?.y ?? 0) + (whole?.height ?? 0) - ((footer?.y ?? 0) + (footer?.height ?? 0))
  assert.ok(below >= 0 && below < 3, `nothing of the form shows below its buttons: ${below} px`)
  // The name has the focus.
  await waitForValue(() => page.evaluate('document.activeElement.placeholder'), 'Codex')
  const field = await dialog.getByLabel('Name').boundingBox()
  assert.ok(field !== null && field.y + field.height <= (footer?.y ?? 0), 'the field with the focus is in view')
  await option(/A shell command/).check()
  const placeOf = async () => JSON.stringify(await option(/A shell command/).boundingBox())
  const before = await placeOf()
  await option(/^Gemini.*2\.0/).waitFor()
  await waitForValue(placeOf, before)
  assert.ok(await option(/A shell command/).isChecked())
  await dialog.getByText('9 more: other kinds of agents').click()
  await waitForValue(() => dialog.getByRole('radio').count(), 13)
  await option(/A model by its API/).check()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('Write the name of the model.').waitFor()
  await dialog.getByLabel('Base URL').fill('http://127.0.0.1:9/v1')
  await dialog.getByLabel('Model', { exact: true }).fill('llama3.2')
  // What is written stays until it is made or cancelled.
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.reload()
  await page.evaluate(`location.assign('#/new')`)
  await option(/A model by its API/).waitFor()
  await waitForValue(() => dialog.getByLabel('Base URL').inputValue(), 'http://127.0.0.1:9/v1')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('complementary', { name: 'Model' }).waitFor()
  const { body } = await platform.request('GET', '/workspaces')
  const made = body.workspaces.find(({ name }: { name: string }) => name === 'Model')
  assert.deepEqual([made.runtime, made.model, made.runtime_config.url], ['openai', 'llama3.2', 'http://127.0.0.1:9/v1'])
})

test('CV-3 on a phone the form begins at its top, and its keyboard waits for a touch', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.request('POST', '/workspaces', { name: 'Conductor', runtime: 'mock' })
  const page = await openPage(t, platform, { viewport: PHONE, context: { hasTouch: true, isMobile: true } })
  await page.evaluate(`location.assign('#/new')`)
  const dialog = page.getByRole('dialog', { name: 'New workspace' })
  await dialog.getByRole('textbox', { name: 'Name' }).waitFor()
  const first = await dialog.getByRole('button', { name: 'On this machine' }).boundingBox()
  const heading = await dialog.getByRole('heading', { name: 'New workspace' }).boundingBox()
  assert.ok(first !== null && heading !== null && first.y > heading.y, 'the top of the form is in view')
  await waitForValue(() => page.evaluate('document.activeElement.localName'), 'button')
})

test('CV-12 a name that was typed for another machine is there when the dialog opens again', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.request('POST', '/workspaces', { name: 'Conductor', runtime: 'mock' })
  const page = await openPage(t, platform, { hash: '#/new' })
  const dialog = page.getByRole('dialog', { name: 'New workspace' })
  await dialog.getByRole('button', { name: 'Connect one that runs elsewhere' }).click()
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Laptop of Mira')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'New workspace' }).click()
  await waitForValue(() => dialog.getByRole('textbox', { name: 'Name' }).inputValue(), 'Laptop of Mira')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'New workspace' }).click()
  await dialog.getByRole('radio').first().waitFor()
})

test('CV-3 CN-1 the connect command works on another machine: it has the public URL, and says how to get the program', async (t) => {
  const platform = await startPlatformFor(t, { args: ['--public-url', 'https://molecule.example'] })
  // The link has the public name, which only this test knows.
  const page = await openPage(t, platform, { role: 'none', hash: new URL(await makeLoginLink(platform)).hash })
  await page.getByRole('banner').waitFor()
  await page.evaluate(`location.assign('#/new')`)
  const dialog = page.getByRole('dialog', { name: 'New workspace' })
  await dialog.getByRole('button', { name: 'Connect one that runs elsewhere' }).click()
  await dialog.getByLabel('Name').fill('Laptop of Mira')
  await dialog.getByRole('button', { name: 'Create' }).click()
  const command = dialog.locator('pre')
  await command.waitFor()
  const [, token, id] =
    /^MOLECULE_WORKSPACE_TOKEN=(\S+) \\\n {2}bin\/molecule connect (\S+) \\\n {2}--api-url https:\/\/molecule\.example --dir FOLDER$/.exec(
      (await command.textContent()) ?? '',
    ) ?? []
  const isCut = await command.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
  assert.equal(isCut, false, 'every line of the command is in view')
  await dialog.getByText('It runs in a clone of Molecule on that machine').waitFor()
  // A clone without packages refuses to connect, and asks for this.
  await dialog.locator('code', { hasText: 'npm install' }).waitFor()
  assert.equal(await dialog.getByText('is this machine itself').count(), 0)
  const { body } = await platform.request('GET', `/workspaces/${id}`)
  assert.equal(body.name, 'Laptop of Mira')
  assert.equal((await fetch(`${platform.url}/me`, { headers: { Authorization: `Bearer ${token}` } })).status, 200)
})

test('CV-3 CN-1 the connect command is copied, also on a page that came by plain http and has no clipboard', async (t) => {
  const platform = await startPlatformFor(t)
  const page = await openPage(t, platform)
  for (const hasClipboard of [true, false]) {
    if (hasClipboard) await page.context().grantPermissions(['clipboard-write'])
    else await page.addInitScript(`Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined })`)
    await page.reload()
    await page.evaluate(`location.assign('#/new')`)
    const dialog = page.getByRole('dialog', { name: 'New workspace' })
    await dialog.getByRole('button', { name: 'Connect one that runs elsewhere' }).click()
    await dialog.getByRole('textbox', { name: 'Name' }).fill(`Laptop ${hasClipboard}`)
    await dialog.getByRole('button', { name: 'Create' }).click()
    const command = await dialog.locator('pre').textContent()
    await dialog.getByRole('button', { name: 'Copy' }).click()
    await dialog.getByRole('button', { name: 'Copied' }).waitFor()
    await dialog.getByRole('button', { name: 'On this machine' }).click()
    await dialog.getByRole('textbox', { name: 'Role' }).focus()
    await page.keyboard.press('Control+v')
    const pasted = command?.replaceAll('\n', ' ')
    await waitForValue(() => dialog.getByRole('textbox', { name: 'Role' }).inputValue(), pasted)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
  }
})

test('CV-6 GW-9 PL-24 "needs you": a failed message is run again, a permission is always allowed; count and title follow', async (t) => {
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
  await failed.getByRole('button', { name: 'Run again' }).click()
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
  const field = page.getByRole('combobox', { name: 'Find a workspace, an action or a message' })
  await field.fill('revi')
  await page
    .getByRole('option', { name: /Reviewer/ })
    .first()
    .waitFor()
  await field.press('Enter')
  await page.getByRole('complementary', { name: 'Reviewer' }).waitFor()
  const focused = (selector: string) =>
    waitUntil(async () => Boolean(await page.evaluate(`document.activeElement.matches('${selector}')`)), selector)
  await focused('textarea[aria-label="Message Reviewer"], aside textarea')
  // Escape leaves the composer, then closes the panel, and the focus is on its card.
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Reviewer' }).waitFor({ state: 'detached' })
  await focused('[aria-label^="Reviewer"]')
  await page.keyboard.press('Control+k')
  await page.keyboard.press('Escape')
  await field.waitFor({ state: 'detached' })
  await focused('[aria-label^="Reviewer"]')
  await page.keyboard.press('Control+k')
  await field.fill('as a list')
  await field.press('Enter')
  await focused('main input[type=search]')
  await page.keyboard.press('Control+k')
  await field.fill('as a map')
  await field.press('Enter')
  await focused('[data-card]')
  await page.keyboard.press('Control+k')
  await field.fill('no such thing')
  await page.getByText('Nothing matches').waitFor()
})

test('CV-5 the Tab key goes through the page as it is read, and the font is one that the page brings', async (t) => {
  const platform = await startPlatformFor(t)
  const { body } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock' })
  await platform.send(body.id, 'hello')
  const page = await openPage(t, platform, { hash: `#/w/${body.id}/chat` })
  await page.getByText('echo: hello').waitFor()
  await waitForValue(() => page.evaluate('document.activeElement.localName'), 'textarea')
  const nameOfFocus = `(() => {
    const { ariaLabel, textContent } = document.activeElement
    return (ariaLabel ?? textContent).replace(/Ctrl.*/, '')
  })()`
  const names: unknown[] = []
  // From the composer to the end of the page, over its beginning, and back to the composer.
  while (names.at(-1) !== 'Message Ada' && names.length < 40) {
    await page.keyboard.press('Tab')
    names.push(await page.evaluate(nameOfFocus))
  }
  const from = names.indexOf('Molecule')
  assert.deepEqual(names.slice(from), [
    'Molecule',
    'Find a workspace, an action or a message',
    'Stop all',
    'Nothing needs you',
    'New workspace',
    'Logged in as admin, admin',
    'Map',
    'List',
    'Ada, online',
    'Actions for Ada',
    'Zoom In',
    'Zoom Out',
    'Fit View',
    'Actions for Ada',
    'Close',
    'Chat',
    'Conversation: hello',
    'New conversation',
    'Messages',
    'Message Ada',
  ])
  const loaded = `[...document.fonts].filter(({ status }) => status === 'loaded').map(({ family }) => family)`
  await waitForValue(() => page.evaluate(`new Set(${loaded}).has('Inter')`), true)
})
