/** Finding a message and coming back to it: search, needs, links, and what stays open meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { checkAccessibility } from './axe.ts'
import { openPage, waitForValue } from './browser.ts'

/** Sends messages of one conversation of people, and waits until the last is answered. */
async function converse(
  platform: PlatformUnderTest,
  id: string,
  { contextId, texts }: { contextId: string; texts: readonly string[] },
) {
  for (const [index, text] of texts.entries()) {
    const message = { messageId: `${contextId}-${index}`, contextId, role: 'ROLE_USER', parts: [{ text }] }
    const isLast = index === texts.length - 1
    await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: !isLast } })
  }
}

const create = async (platform: PlatformUnderTest, more: object = {}): Promise<string> => {
  const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock', ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

/** Waits until the message with the text is in view. The page scrolls to it after it is there. */
const waitForView = (page: Page, text: string): Promise<void> =>
  waitForValue(
    () =>
      page
        .locator('[data-key]', { hasText: text })
        .first()
        .evaluate((element) => {
          const { top, bottom } = element.getBoundingClientRect()
          return top >= 0 && bottom <= (element.ownerDocument.defaultView?.innerHeight ?? 0)
        }),
    true,
  )

const messages = (page: Page) => page.getByRole('region', { name: 'Messages' })

/** Scrolls away from the end. While messages come the page keeps to its end, so once may be too early. */
async function scrollUp(page: Page): Promise<void> {
  const newest = page.getByRole('button', { name: 'Newest', exact: true })
  await waitUntil(async () => {
    await messages(page).evaluate((element) => element.scrollTo(0, 300))
    return (await newest.count()) > 0
  }, 'the page is away from its end')
}

test('CV-11 the search finds the oldest message of an old conversation, and opens it there, highlighted', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform)
  const filler = Array.from({ length: 80 }, (_, index) => `filler ${index}`)
  await converse(platform, id, { contextId: 'old', texts: ['where is the needle?', ...filler] })
  await converse(platform, id, { contextId: 'new', texts: ['something else'] })
  const page = await openPage(t, platform, { hash: `#/w/${id}/chat` })
  await messages(page).getByText('echo: something else').waitFor()
  await page.getByRole('button', { name: 'Conversation: something else' }).click()
  await page.getByRole('searchbox').fill('the NEEDLE')
  const found = page.getByRole('list', { name: 'Found messages' })
  await found.getByText('the needle').first().waitFor()
  await checkAccessibility(t, page, 'found messages')
  await found.getByRole('button').last().click()
  const target = messages(page).locator('[data-key]', { hasText: 'where is the needle?' }).first()
  await waitForView(page, 'where is the needle?')
  const outlineOf = () =>
    target.evaluate((element) => element.ownerDocument.defaultView?.getComputedStyle(element).outlineStyle)
  await waitForValue(outlineOf, 'solid')
  // Older pages were not read on the way, and nothing is new.
  await page.getByRole('button', { name: 'Newest', exact: true }).waitFor()
  assert.equal(await page.getByText('filler 79', { exact: true }).count(), 0)
  await page.reload()
  await waitForView(page, 'where is the needle?')
  await page.getByRole('button', { name: 'Newest', exact: true }).click()
  await messages(page).getByText('filler 79', { exact: true }).first().waitFor()
})

test('CV-11 the palette finds messages of every workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const [ada, ben] = [await create(platform), await create(platform, { name: 'Ben' })]
  await converse(platform, ada, { contextId: 'a', texts: ['about the lighthouse'] })
  await converse(platform, ben, { contextId: 'b', texts: ['the lighthouse again'] })
  const page = await openPage(t, platform)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('lighthouse')
  const options = page.getByRole('option', { name: /message, / })
  await options.filter({ hasText: 'about the lighthouse' }).filter({ hasText: 'message, Ada' }).first().waitFor()
  await options.filter({ hasText: 'the lighthouse again' }).filter({ hasText: 'message, Ben' }).first().click()
  await page.getByRole('complementary', { name: 'Ben' }).waitFor()
  await messages(page).getByText('the lighthouse again', { exact: true }).waitFor()
})

test('CV-6 CV-9 a need opens its own message, and nothing that was open is closed on the way', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, { max_concurrent_tasks: 4 })
  const id = worker.workspaceId
  const send = (contextId: string, text: string) => {
    const message = { messageId: `m-${contextId}`, contextId, role: 'ROLE_USER', parts: [{ text }] }
    return platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
  }
  await send('asking', 'write the guide')
  await (await worker.lease()).ask('**25** or 32?')
  await send('other', 'read the news')
  await (await worker.lease()).answer('Nothing new.')
  const page = await openPage(t, platform, { hash: `#/w/${id}/chat` })
  await messages(page).getByText('Nothing new.').waitFor()
  await page.getByRole('textbox', { name: 'Message Ada' }).fill('half a thought')
  await page.getByRole('tab', { name: 'Config' }).click()
  const editor = page.getByRole('textbox', { name: 'config.yaml' })
  await editor.waitFor()
  await editor.fill('half written')
  await page.getByRole('button', { name: '1 needs you' }).click()
  const drawer = page.getByRole('dialog')
  await drawer.locator('strong', { hasText: '25' }).waitFor()
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'New workspace' }).first().click()
  await page.getByRole('dialog', { name: 'New workspace' }).waitFor()
  await page.keyboard.press('Escape')
  await waitForValue(() => editor.inputValue(), 'half written')
  assert.equal(new URL(page.url()).hash, `#/w/${id}/config`)
  await page.getByRole('button', { name: '1 needs you' }).click()
  await drawer.getByRole('link', { name: 'Ada asks' }).click()
  await drawer.waitFor({ state: 'detached' })
  await messages(page).getByText('write the guide').waitFor()
  await page.getByText('This answers the question of Ada.').waitFor()
})

test('CV-11 the palette says that it searches, and keeps the chosen entry in view', async (t) => {
  const platform = await startPlatformFor(t)
  for (let number = 0; number < 14; number++) await create(platform, { name: `Ada ${number}` })
  const page = await openPage(t, platform)
  const release = Promise.withResolvers<void>()
  await page.route('**/messages?*', async (route) => {
    await release.promise
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  const find = page.getByRole('dialog', { name: 'Find' })
  const field = find.getByRole('combobox')
  await field.fill('Ada')
  for (let step = 0; step < 11; step++) await field.press('ArrowDown')
  const chosen = find.getByRole('option', { selected: true })
  const isInList = async () => {
    const [entry, list] = [await chosen.boundingBox(), await find.getByRole('listbox').boundingBox()]
    return entry !== null && list !== null && entry.y + entry.height <= list.y + list.height + 1
  }
  await waitUntil(isInList, 'the chosen entry is in view')
  await field.fill('lighthouse')
  await find.getByText('Searching the messages…').waitFor()
  assert.equal(await find.getByText('Nothing matches').count(), 0, 'no word of the end before it')
  release.resolve()
  await find.getByText('Nothing matches “lighthouse”.').waitFor()
})

test('CV-5 Escape in the list of conversations closes the list, and the panel stays', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform)
  await converse(platform, id, { contextId: 'a', texts: ['about the lighthouse'] })
  const page = await openPage(t, platform, { hash: `#/w/${id}/chat` })
  await page.getByRole('button', { name: 'Conversation: about the lighthouse' }).click()
  await page.getByRole('searchbox').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Escape')
  await page.getByRole('searchbox').waitFor({ state: 'detached' })
  assert.equal(await page.getByRole('complementary', { name: 'Ada' }).count(), 1)
  await messages(page).getByText('echo: about the lighthouse').waitFor()
})

test('CV-8 "New messages" is only there when there are new ones below', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform)
  await converse(platform, id, {
    contextId: 'long',
    texts: Array.from({ length: 40 }, (_, index) => `number ${index}`),
  })
  const page = await openPage(t, platform, { hash: `#/w/${id}/chat` })
  const list = messages(page)
  await list.getByText('echo: number 39').waitFor()
  await scrollUp(page)
  // What a person sends is shown at once.
  await page.getByRole('textbox', { name: 'Message Ada' }).fill('mine')
  await page.getByRole('textbox', { name: 'Message Ada' }).press('Enter')
  await list.getByText('echo: mine').waitFor()
  await waitForView(page, 'echo: mine')
  await scrollUp(page)
  const message = { messageId: 'later', contextId: 'long', role: 'ROLE_USER', parts: [{ text: 'of another tab' }] }
  await platform.rpc(id, 'SendMessage', { message })
  await page.getByRole('button', { name: 'New messages' }).click()
  await list.getByText('echo: of another tab').waitFor()
})

test('CV-8 older messages that are read on the way down are not "New messages"', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform)
  await converse(platform, id, {
    contextId: 'long',
    texts: Array.from({ length: 90 }, (_, index) => `number ${index}.`),
  })
  const open = (at: string) => page.evaluate(`location.assign('#/w/${id}/chat/long/${at}')`)
  const page = await openPage(t, platform)
  const { body } = await platform.request('GET', `/messages?search=${encodeURIComponent('number 3.')}`)
  const watchLabels = `(() => {
    window.labels = new Set()
    new MutationObserver(() => {
      if (document.body.innerText.includes('New messages')) labels.add('New messages')
    }).observe(document.body, { subtree: true, childList: true, characterData: true })
  })()`
  await page.evaluate(watchLabels)
  await open(body.messages[0].id)
  await page.getByRole('button', { name: 'Newest', exact: true }).waitFor()
  const list = messages(page)
  await waitUntil(async () => {
    await list.evaluate((element) => element.scrollBy(0, 300))
    return (await list.getByText('echo: number 89.').count()) > 0
  }, 'the end is read')
  await page.waitForTimeout(200)
  assert.deepEqual(await page.evaluate('[...labels]'), [])
})

test('CV-2 a message costs at most three requests, from Enter to its answer', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec(`read line; printf 'It is %s' "$line"; sleep 1; printf ' and done'`, { name: 'Ada' })
  const page = await openPage(t, platform, { hash: `#/w/${id}/chat` })
  const box = page.getByRole('textbox', { name: 'Message Ada' })
  const asked: string[] = []
  page.on('request', (request) => {
    if (/^https?:/.test(request.url())) asked.push(`${request.method()} ${new URL(request.url()).pathname}`)
  })
  const exchange = async (text: string) => {
    await box.fill(text)
    await box.press('Enter')
    await page.getByText(`It is ${text}`).waitFor()
    await page.getByText(`It is ${text} and done`).waitFor()
    await page
      .getByRole('article')
      .filter({ hasText: `It is ${text}` })
      .locator('[data-state=answered]')
      .waitFor()
    // Whatever the page still asks for comes within its throttles. The page counts the time: it may be late itself.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 3500))')
  }
  await exchange('first')
  for (const text of ['second', 'third']) {
    asked.length = 0
    await exchange(text)
    assert.ok(asked.length <= 3, asked.join('\n'))
  }
})
