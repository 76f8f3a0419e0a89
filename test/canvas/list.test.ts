/** Many workspaces as a list, and the page on a phone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { cardOf, openPage, PHONE, waitForValue } from './browser.ts'

const create = async (platform: PlatformUnderTest, name: string, more = {}) =>
  (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string

test('CV-5 many workspaces are a list by parent with filters and counts; the map is one click away and remembered', async (t) => {
  const platform = await startPlatformFor(t)
  const parent = await create(platform, 'Conductor')
  for (let index = 0; index < 42; index++) {
    await create(platform, `Worker ${index}`, index % 2 === 0 ? { parent_id: parent } : {})
  }
  const paused = await create(platform, 'Rollback drill', { role: 'Rehearses the worst day' })
  await platform.request('POST', `/workspaces/${paused}/pause`)
  const page = await openPage(t, platform)
  await page.getByRole('heading', { name: 'Conductor 21' }).waitFor()
  await page.getByRole('heading', { name: 'No parent 22' }).waitFor()
  await page.getByRole('button', { name: 'Paused 1' }).click()
  await waitForValue(() => page.locator('[data-workspace]').count(), 1)
  await page.getByRole('button', { name: 'All 44' }).click()
  await page.getByRole('searchbox').fill('worst day')
  await cardOf(page, paused).waitFor()
  await waitForValue(() => page.locator('[data-workspace]').count(), 1)
  await page.getByRole('searchbox').fill('shpo')
  await page.getByText('No workspace matches “shpo”').waitFor()
  await page.getByRole('button', { name: 'Clear the filter' }).click()
  await cardOf(page, paused).click()
  await page.getByRole('complementary', { name: 'Rollback drill' }).waitFor()
  await page.getByRole('button', { name: 'Map' }).click()
  await page.locator('.react-flow').waitFor()
  await page.reload()
  await page.locator('.react-flow').waitFor()
})

test('CV-5 on a phone: the list, a workspace over the whole screen, and back; nothing wider than the screen', async (t) => {
  const platform = await startPlatformFor(t)
  const parent = await create(platform, 'Conductor with a name that is much too long for the screen of a phone')
  const child = await create(platform, 'Ada', { parent_id: parent, role: 'A role '.repeat(20) })
  const page = await openPage(t, platform, { viewport: PHONE })
  await cardOf(page, parent).waitFor()
  assert.equal(await page.locator('.react-flow').count(), 0)
  assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= PHONE.width)
  await cardOf(page, child).click()
  await page.getByRole('complementary', { name: 'Ada' }).waitFor()
  await cardOf(page, child).waitFor({ state: 'hidden' })
  assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= PHONE.width)
  await page.getByRole('button', { name: 'Back' }).click()
  await cardOf(page, child).waitFor()
})
