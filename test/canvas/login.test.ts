/** The login link and what a page without a session shows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPlatformFor } from '../harness/platform.ts'
import { cardOf, makeLoginLink, openPage } from './browser.ts'

test('CL-4 CV-1 the login link works once, and leaves no code in the address bar or the history', async (t) => {
  const platform = await startPlatformFor(t)
  const { body: ada } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock' })
  const link = await makeLoginLink(platform)
  const page = await openPage(t, platform, { role: 'none' })
  await page.getByText('Not logged in').waitFor()
  await page.getByText('bin/molecule open').waitFor()
  await page.goto(link)
  await page.reload()
  await cardOf(page, ada.id).waitFor()
  assert.equal(page.url(), `${platform.url}/`)
  const code = new URL(link).hash.slice(1)
  const other = await openPage(t, platform, { role: 'none', hash: `#${code}` })
  await other.getByText(/already used or has expired/).waitFor()
  assert.equal(await cardOf(other, ada.id).count(), 0)
  // In a browser that is logged in, a used link is no problem.
  await page.goto(link)
  await page.reload()
  await cardOf(page, ada.id).waitFor()
})

test('CV-1 a logged-out page shows no data, and logging out removes what was shown', async (t) => {
  const platform = await startPlatformFor(t)
  const { body: ada } = await platform.request('POST', '/workspaces', { name: 'Secret of Ada', runtime: 'mock' })
  const stranger = await openPage(t, platform, { role: 'none' })
  await stranger.getByText('Not logged in').waitFor()
  assert.doesNotMatch(await stranger.content(), /Secret of Ada/)
  const page = await openPage(t, platform)
  await cardOf(page, ada.id).waitFor()
  await page.getByRole('button', { name: 'Logged in as admin, admin' }).click()
  await page.getByRole('menuitem', { name: 'Log out' }).click()
  await page.getByText('Not logged in').waitFor()
  assert.doesNotMatch(await page.content(), /Secret of Ada/)
  await page.reload()
  await page.getByText('Not logged in').waitFor()
})

test('PL-12 a session that is revoked leaves the page without data', async (t) => {
  const platform = await startPlatformFor(t)
  const { body: ada } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock' })
  const page = await openPage(t, platform, { role: 'viewer' })
  await cardOf(page, ada.id).waitFor()
  const { body } = await platform.request('GET', '/tokens')
  const session = body.tokens.find(
    ({ kind, role }: { kind: string; role: string }) => kind === 'session' && role === 'viewer',
  )
  assert.equal((await platform.request('DELETE', `/tokens/${session.id}`)).status, 204)
  await page.getByText('Not logged in').waitFor()
  assert.equal(await cardOf(page, ada.id).count(), 0)
})
