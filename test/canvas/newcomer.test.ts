/**
 * The script of a newcomer in a browser, from the login link to a deleted workspace. With `MOLECULE_SHOTS=<folder>` each
 * step leaves a picture in that folder, to be looked at.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { type OpenPageOptions, openPage, PHONE } from './browser.ts'

const LOOKS: Readonly<Record<string, OpenPageOptions>> = {
  'desktop-light': {},
  'phone-dark': { viewport: PHONE, colorScheme: 'dark' },
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['MOLECULE_SHOTS']
  if (folder === undefined) return
  await page.evaluate('document.fonts.ready')
  await page.screenshot({ path: join(folder, `${name}.png`) })
}

for (const [look, options] of Object.entries(LOOKS)) {
  test(`CV-3 CV-5 CV-6 a newcomer logs in, makes a workspace, chats, allows, stops, renames, pauses, resumes and deletes (${look})`, async (t) => {
    const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
    const page = await openPage(t, platform, options)
    const shot = (step: string) => picture(page, `${look}-${step}`)
    await page.getByRole('button', { name: 'Start Try without an agent' }).waitFor()
    await shot('1-first-run')
    await page.getByRole('button', { name: 'Start Try without an agent' }).click()
    const echo = page.getByRole('complementary', { name: 'Echo' })
    const box = echo.getByRole('textbox', { name: 'Message Echo' })
    await box.fill('hello there')
    await box.press('Enter')
    await echo.locator('[data-state=answered]').waitFor()
    await shot('2-chat')

    // A permission of another agent: the count, the drawer, the answer.
    const { path: bin } = createFakeProgram('claude')
    const { body: ada } = await platform.request('POST', '/workspaces', {
      name: 'Ada',
      runtime: 'claude-code',
      runtime_config: { bin },
    })
    await platform.send(ada.id, '!ask npm test')
    await page.evaluate(`location.assign('#/needs')`)
    const asked = page.getByRole('article', { name: 'Ada wants to run a command' })
    await asked.getByText('npm test', { exact: true }).first().waitFor()
    await shot('3-needs-you')
    await asked.getByRole('button', { name: 'Allow once' }).click()
    await asked.waitFor({ state: 'detached' })

    // Settings, then a turn that takes long, and Stop.
    const { body } = await platform.request('GET', '/workspaces')
    const { id } = body.workspaces.find(({ name }: { name: string }) => name === 'Echo')
    await page.evaluate(`location.assign('#/w/${id}/config')`)
    const config = page.getByRole('region', { name: 'config.yaml' })
    const area = config.getByRole('textbox', { name: 'config.yaml' })
    await area.waitFor()
    await area.fill(`${(await area.inputValue()).trimEnd()}\nruntime_config:\n  delay: 1h\n`)
    await shot('4-config')
    await config.getByRole('button', { name: 'Save' }).click()
    await config.getByText('no restart is needed').waitFor()
    await echo.getByRole('tab', { name: 'Chat' }).click()
    await box.fill('take your time')
    await box.press('Enter')
    await echo.getByRole('button', { name: 'Stop', exact: true }).click()
    await echo
      .getByText(/stopped/i)
      .first()
      .waitFor()
    await shot('5-stopped')

    const choose = async (item: string) => {
      await echo.getByRole('button', { name: /^Actions for/ }).click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    await choose('Rename…')
    const field = page.getByRole('dialog').getByRole('textbox', { name: 'Name' })
    await field.fill('Parrot')
    await field.press('Enter')
    const parrot = page.getByRole('complementary', { name: 'Parrot' })
    await parrot.getByRole('tab', { name: 'Details' }).click()
    const statusOf = async () => (await platform.request('GET', `/workspaces/${id}`)).body.status
    const press = async (button: string, status: string) => {
      await parrot.getByRole('button', { name: button, exact: true }).click()
      await waitUntil(async () => (await statusOf()) === status, status)
    }
    if ((await statusOf()) === 'paused') await press('Resume', 'online')
    await press('Pause', 'paused')
    await parrot.getByRole('button', { name: 'Resume', exact: true }).waitFor()
    await shot('6-paused')
    await press('Resume', 'online')
    await parrot.getByRole('button', { name: 'Delete…' }).click()
    const question = page.getByRole('dialog', { name: 'Delete Parrot?' })
    await question.waitFor()
    await shot('7-delete')
    await question.getByRole('button', { name: 'Delete Parrot' }).click()
    await parrot.waitFor({ state: 'detached' })
    await page.locator(`[data-workspace="${ada.id}"]`).waitFor()
    await shot('8-end')
    assert.equal((await platform.request('GET', `/workspaces/${id}`)).status, 404)
  })
}
