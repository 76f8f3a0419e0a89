/** What the page shows of a workspace that works with less than it could. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { openPage } from './browser.ts'

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
  const shown = await page.locator(`[data-workspace="${body.id}"]`).getByText('limited').getAttribute('title')
  assert.equal(shown?.toLowerCase(), limit.toLowerCase())
  await page.getByRole('button', { name: 'ada, online, limited' }).click()
  const panel = page.getByRole('complementary', { name: 'ada' })
  await panel.getByText(/^Claude 2\.0\.1 is older than 2\.1\.197, .* update claude with `npm install/).waitFor()
  await page.screenshot({ path: process.env['LIMITS_PICTURE'] ?? '/dev/null', type: 'png' })
})
