/** The login link and what a page without a session shows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHandWorker } from '../harness/hand-worker.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { cardOf, makeLoginLink, openPage, waitForValue } from './browser.ts'

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

test('RE-9 CV-2 an unsent message and a draft are neither sent nor shown by the next person who logs in', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const chat = `#/w/${worker.workspaceId}/chat`
  const page = await openPage(t, platform, { hash: chat })
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  const logIn = async (name: string) => {
    await page.goto(await makeLoginLink(platform, 'admin', name))
    await page.reload()
    await page.getByRole('button', { name: `Logged in as ${name}, admin` }).waitFor()
    await page.evaluate(`location.assign(${JSON.stringify(chat)})`)
    await box.waitFor()
  }
  await page.route('**/a2a', (route) => route.abort())
  await box.fill('only from me')
  await box.press('Enter')
  await page.getByText('not sent yet').waitFor()
  await box.fill('a secret draft')
  await page.context().clearCookies()
  await page.unroute('**/a2a')
  // The same person in a new session decides about it.
  await logIn('admin')
  await page.getByText('not sent: You have logged in again since you wrote it.').waitFor()
  await waitForValue(() => box.inputValue(), 'a secret draft')
  await logIn('eve')
  await page.getByText('Say hello to Ada').waitFor()
  await waitForValue(() => box.inputValue(), '')
  await box.fill('from eve')
  await box.press('Enter')
  assert.match((await worker.lease()).text, /from eve/)
})
