/** What the page shows of a workspace that works with less than it could. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { cardOf, openPage, readStill } from './browser.ts'

test('RT-18 the card and the header of a workspace say what does not work with its agent', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude', 'ancient')
  const { body } = await platform.request('POST', '/workspaces', {
    name: 'ada',
    runtime: 'claude-code',
    runtime_config: { bin },
  })
  await platform.request('POST', '/workspaces', { name: 'bob', runtime: 'mock' })
  const page = await openPage(t, platform)
  const [limit] = body.limits
  await page.getByRole('button', { name: 'ada, online, limited' }).waitFor()
  await page.getByRole('button', { name: 'bob, online', exact: true }).waitFor()
  const shown = await titleAt(page, cardOf(page, body.id).getByText('limited'))
  assert.ok(shown.toLowerCase().endsWith(`\n${limit.toLowerCase()}`), shown)
  await page.getByRole('button', { name: 'ada, online, limited' }).click()
  const panel = page.getByRole('complementary', { name: 'ada' })
  await panel.getByText(/^Claude 2\.0\.1 is older than 2\.1\.197, .* update claude with `npm install/).waitFor()
  await page.screenshot({ path: process.env['LIMITS_PICTURE'] ?? '/dev/null', type: 'png' })
})

test('CV-1 AG-16 a card says which agent never asks, wherever that is set, and its model to a mouse that rests on it', async (t) => {
  const platform = await startPlatformFor(t)
  const { path: bin } = createFakeProgram('codex')
  const create = async (more: object) => {
    const codex = { runtime: 'codex', runtime_config: { bin } }
    return (await platform.request('POST', '/workspaces', { ...codex, ...more })).body.id as string
  }
  const option = await create({ name: 'option', runtime_config: { bin, permission: 'bypass' }, model: 'gpt-7' })
  const setting = await create({ name: 'setting', permission: 'bypass' })
  const both = await create({ name: 'both', permission: 'ask', runtime_config: { bin, permission: 'bypass' } })
  const page = await openPage(t, platform)
  for (const id of [option, setting]) await cardOf(page, id).getByText('never asks').waitFor()
  await cardOf(page, both).getByText('codex', { exact: true }).waitFor()
  assert.equal(await cardOf(page, both).getByText('never asks').count(), 0)
  assert.match(await titleAt(page, cardOf(page, option).getByText('codex', { exact: true })), /^option\ncodex, gpt-7\n/)
  await page.evaluate(`location.assign('#/w/${option}/details')`)
  const panel = page.getByRole('complementary', { name: 'option' })
  await panel.getByText('It runs commands and changes files without asking.').waitFor()
})

/** What the browser shows when the mouse rests there: the title of what feels the mouse. */
async function titleAt(page: Page, place: Locator): Promise<string> {
  const box = await readStill(() => place.boundingBox())
  assert.ok(box)
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  return page.evaluate(`document.elementFromPoint(${x}, ${y}).closest('[title]')?.title ?? ''`)
}
