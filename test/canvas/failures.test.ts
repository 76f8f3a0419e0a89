/** Content and addresses that the page cannot show, in a real browser: the rest of the page stays. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { cardOf, openPage } from './browser.ts'

const openChat = (t: TestContext, platform: PlatformUnderTest, id: string) =>
  openPage(t, platform, { hash: `#/w/${id}/chat` })

test('CV-14 an answer of 3,000 quote marks is plain text, after a reload too', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  for (const deep of ['>'.repeat(3000), '1. '.repeat(3000), '!'.repeat(100_000)]) {
    await box.fill(`Say ${deep.slice(0, 3)}`)
    await box.press('Enter')
    await (await worker.lease()).answer(deep)
    await page.getByText(deep.slice(0, 3000).trim()).waitFor()
  }
  await page.reload()
  await page.getByText('>'.repeat(3000)).waitFor()
  await box.fill('and on')
})

test('CV-14 a message or a tab that cannot be shown says so, and the rest of the page stays', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openPage(t, platform)
  // Answers that no version of the platform gives: a list that is null, and a number in place of a list.
  await page.route(/\/conversations\/[^?]+/, async (route) => {
    const answer = await route.fetch()
    const body = await answer.text()
    await route.fulfill({ response: answer, body: body.replaceAll('"tools":[]', '"tools":null') })
  })
  await page.route(/\/memories\b/, (route) => route.fulfill({ json: { memories: 5, next: null } }))
  await page.evaluate(`location.assign('#/w/${worker.workspaceId}/chat')`)
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  await box.fill('what is broken?')
  await box.press('Enter')
  await (await worker.lease()).answer('This part.')
  const failed = page.getByText('This message could not be shown.')
  await failed.waitFor()
  await page.getByRole('button', { name: 'Show as text' }).click()
  await page.getByText('This part.').waitFor()
  await box.fill('the composer works')
  await page.getByRole('tab', { name: 'Memory' }).click()
  await page.getByText('The tab Memory could not be shown.').waitFor()
  await page.getByRole('tab', { name: 'Details' }).click()
  await page.getByText('The tab Memory could not be shown.').waitFor({ state: 'detached' })
  await page.getByRole('banner').waitFor()
})

test('CV-14 a tab whose program cannot be loaded offers to try again, and then to load the page', async (t) => {
  const platform = await startPlatformFor(t)
  const { workspaceId } = await createHandWorker(platform, {})
  const page = await openPage(t, platform, { hash: `#/w/${workspaceId}/details` })
  await page.getByRole('complementary', { name: 'Ada' }).waitFor()
  await page.route(/\/assets\/memory-/, (route) => route.abort())
  await page.getByRole('tab', { name: 'Memory' }).click()
  await page.getByRole('button', { name: 'Try again' }).click()
  const load = page.getByRole('button', { name: 'Load the page again' })
  await load.waitFor()
  await page.unroute(/\/assets\/memory-/)
  await load.click()
  await page.getByLabel('Add a memory').waitFor()
})

test('CV-14 an address that leads nowhere shows the start with a sentence', async (t) => {
  const platform = await startPlatformFor(t)
  const { workspaceId } = await createHandWorker(platform, {})
  const page = await openPage(t, platform)
  const addresses = [
    ['#/%', 'This address leads nowhere.'],
    ['#/w/100%', 'This address leads nowhere.'],
    ['#/nothing', 'This address leads nowhere.'],
    ['#/w/ws_none', 'There is no workspace at this address.'],
  ] as const
  for (const [hash, sentence] of addresses) {
    await page.evaluate(`location.assign(${JSON.stringify(hash)})`)
    await page.reload()
    await page.getByRole('alert').getByText(sentence).waitFor()
    await cardOf(page, workspaceId).waitFor()
    await page.getByRole('alert').getByRole('button', { name: 'Close' }).click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).hash, '#/')
  }
})

test('PL-30 a permission shows the hidden characters of its command, in the chat and in "needs you"', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  await box.fill('clean up')
  await box.press('Enter')
  const turn = await worker.lease()
  const tool = `mcp__x__${'\u202e'}${'y'.repeat(240)}`
  await turn.append({ type: 'tool', name: 'Bash', subject: 'ls \u202eb', state: 'started' })
  await turn.ask('may I?', { tool, subject: 'rm \u202etxt.a\u202c \u001b[8m; true' })
  const card = page.getByRole('region', { name: /wants to use/ })
  await card.getByText('rm \\u202etxt.a\\u202c \\x1b[8m; true').waitFor()
  assert.match((await card.getByRole('heading').textContent()) ?? '', /use mcp__x__\\u202ey{100,200}…/)
  await page.getByRole('button', { name: 'ls \\u202eb' }).waitFor()
  await page.evaluate("location.assign('#/needs')")
  const drawer = page.getByRole('dialog')
  await drawer.getByText('rm \\u202etxt.a\\u202c \\x1b[8m; true').first().waitFor()
  assert.doesNotMatch(await page.content(), /[\u202a-\u202e]/)
})

test('CV-14 a browser whose notifications throw, as on Android, keeps its page and says that it cannot notify', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const page = await openChat(t, platform, worker.workspaceId)
  await page.addInitScript(`(() => {
    let permission = 'default'
    window.Notification = class {
      constructor() { throw new TypeError('Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.') }
      static get permission() { return permission }
      static async requestPermission() { return (permission = 'granted') }
    }
    // The page is in another tab when the need comes.
    Object.defineProperty(document, 'hidden', { get: () => true })
  })()`)
  await page.reload()
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  await page.getByRole('button', { name: 'Nothing needs you' }).click()
  await page.getByRole('button', { name: 'Notify me' }).click()
  await page.getByText('This browser does not let a page notify you.').waitFor()
  await page.keyboard.press('Escape')
  // Behind an open dialog nothing takes a key.
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await box.fill('ask me')
  await box.press('Enter')
  await (await worker.lease()).ask('may I?', { tool: 'Bash', subject: 'ls' })
  await page.getByRole('button', { name: '1 needs you' }).waitFor()
  await page.getByRole('region', { name: 'Ada wants to run a command' }).waitFor()
})
