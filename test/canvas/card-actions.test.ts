/** What people do with cards: rename, nest, pause, restart, delete, stop all; by pointer, by keyboard, and by role. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { createHandWorker } from '../harness/hand-worker.ts'
import { getWorkspace, type PlatformUnderTest, sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { cardOf, openPage, PHONE, waitForValue } from './browser.ts'

const create = async (platform: PlatformUnderTest, name: string, more = {}) =>
  (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string

async function choose(page: Page, name: string, item: string): Promise<void> {
  await page
    .getByRole('button', { name: `Actions for ${name}` })
    .first()
    .click()
  await page.getByRole('menuitem', { name: item }).click()
}

test('CV-3 a card is renamed, paused and resumed, restarted, and deleted after a question', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, 'Ada')
  const child = await create(platform, 'Scout', { parent_id: id })
  const page = await openPage(t, platform)
  await choose(page, 'Ada', 'Rename…')
  await page.getByRole('textbox', { name: 'Name' }).fill('Ada Lovelace')
  await page.keyboard.press('Enter')
  await cardOf(page, id).getByText('Ada Lovelace').waitFor()
  await choose(page, 'Ada Lovelace', 'Pause')
  await cardOf(page, id).getByText('paused').waitFor()
  await page.getByRole('button', { name: 'Resume', exact: true }).click()
  await waitUntil(async () => (await getWorkspace(platform, id)).status === 'online')
  await choose(page, 'Ada Lovelace', 'Restart')
  await page.getByText('begins its next turn with a new agent').waitFor()
  await choose(page, 'Ada Lovelace', 'Delete…')
  await page.getByText('Also deleted, because they are below it: Scout').waitFor()
  await page.getByRole('button', { name: 'Delete 2 workspaces' }).click()
  for (const gone of [child, id]) await cardOf(page, gone).waitFor({ state: 'detached' })
})

test('CV-3 a card that is dragged onto another one stands below it, Undo brings it back, and the zone at the top removes its parent', async (t) => {
  const platform = await startPlatformFor(t)
  const ada = await create(platform, 'Ada')
  const scout = await create(platform, 'Scout')
  const page = await openPage(t, platform)
  const parentOf = async (id: string) => (await getWorkspace(platform, id)).parent_id ?? null
  const centre = async (id: string) => {
    const box = await cardOf(page, id).boundingBox()
    assert.ok(box !== null)
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 }
  }
  /** Waits until the cards stand side by side or one below the other, and do not move any more. */
  const settled = async (isBelow: boolean) => {
    let last = ''
    await waitUntil(
      async () => {
        const [parent, child] = [await centre(ada), await centre(scout)]
        const before = last
        last = JSON.stringify([parent, child])
        return child.y > parent.y === isBelow && last === before
      },
      `the cards stand ${isBelow ? 'one below the other' : 'side by side'}`,
    )
  }
  const drag = async (from: { x: number; y: number }, to: { x: number; y: number }) => {
    await page.mouse.move(from.x, from.y)
    await page.mouse.down()
    await page.mouse.move(from.x + 20, from.y + 20, { steps: 4 })
    await page.mouse.move(to.x, to.y, { steps: 8 })
    await page.mouse.up()
  }
  await cardOf(page, scout).waitFor()
  await settled(false)
  await drag(await centre(scout), await centre(ada))
  await waitUntil(async () => (await parentOf(scout)) === ada, 'Scout is below Ada')
  await page.getByText('Scout is now below Ada.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await waitUntil(async () => (await parentOf(scout)) === null, 'Scout has no parent')
  await settled(false)
  await drag(await centre(scout), await centre(ada))
  await waitUntil(async () => (await parentOf(scout)) === ada, 'Scout is below Ada')
  await settled(true)
  await drag(await centre(scout), { x: 600, y: 80 })
  await waitUntil(async () => (await parentOf(scout)) === null, 'Scout has no parent')
})

test('CV-5 the map works by keyboard: arrows move between cards, Enter opens, Escape closes, the menu moves a card', async (t) => {
  const platform = await startPlatformFor(t)
  const top = await create(platform, 'Conductor')
  const left = await create(platform, 'Ada', { parent_id: top })
  const right = await create(platform, 'Scout', { parent_id: top })
  const page = await openPage(t, platform)
  const card = (id: string) => page.locator(`[data-card="${id}"]`)
  await card(top).focus()
  const step = async (key: string, to: string) => {
    await page.keyboard.press(key)
    await waitUntil(() => card(to).evaluate((element) => element === element.ownerDocument.activeElement), key)
  }
  await step('ArrowDown', left)
  await step('ArrowRight', right)
  await step('ArrowUp', top)
  await step('ArrowDown', left)
  await page.keyboard.press('Enter')
  await page.getByRole('complementary', { name: 'Ada' }).waitFor()
  // The composer takes the focus when the conversation is read.
  const composer = page.getByRole('textbox', { name: 'Message Ada' })
  await waitUntil(() => composer.evaluate((element) => element === element.ownerDocument.activeElement), 'composer')
  await card(left).focus()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Ada' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('combobox', { name: 'Below' }).selectOption('Scout')
  await page.getByRole('button', { name: 'Move', exact: true }).press('Enter')
  await waitUntil(async () => (await getWorkspace(platform, left)).parent_id === right)
})

test('CV-6 stop all asks, cancels what runs, pauses every workspace, and offers to resume', async (t) => {
  const platform = await startPlatformFor(t)
  const busy = await create(platform, 'Busy', { runtime_config: { delay: '1h' } })
  const idle = await create(platform, 'Idle')
  await sendWithoutWaiting(platform, busy, 'work')
  const page = await openPage(t, platform, { role: 'member' })
  await cardOf(page, busy).locator('[data-banner=working]').waitFor()
  await page.getByRole('button', { name: 'Stop all' }).click()
  const dialog = page.getByRole('dialog', { name: 'Stop all workspaces?' })
  await dialog.getByText('1 running turn will be cancelled. 2 workspaces will pause').waitFor()
  await dialog.getByRole('button', { name: 'Stop all' }).click()
  await page.getByText('Stopped 1 turn and paused 2 workspaces.').waitFor()
  await cardOf(page, idle).getByText('paused').waitFor()
  await page.getByRole('button', { name: 'Undo the pause' }).click()
  await waitUntil(async () => (await getWorkspace(platform, idle)).status === 'online')
})

test('CV-6 stop all says that turns that wait for an answer end too; after Resume all nothing is left to undo', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  await sendWithoutWaiting(platform, worker.workspaceId, 'write the guide')
  const turn = await worker.lease()
  const page = await openPage(t, platform)
  await turn.ask('may I?', { tool: 'Bash', subject: 'make guide' })
  await cardOf(page, worker.workspaceId).locator('[data-banner=needs]').waitFor()
  await page.getByRole('button', { name: 'Stop all' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('No turn runs now. Turns that wait for an answer will be cancelled too.').waitFor()
  await dialog.getByRole('button', { name: 'Stop all' }).click()
  await page.getByText('Stopped 1 turn and paused 1 workspace.').waitFor()
  await page.getByRole('banner').getByRole('button', { name: 'Resume all' }).click()
  await dialog.getByRole('button', { name: 'Resume all' }).click()
  await page.getByText('1 workspace works again.').waitFor()
  await waitForValue(() => page.getByRole('button', { name: 'Undo the pause' }).count(), 0)
})

test('CV-6 CV-10 resume all stays after a reload and for another person: in the bar, in the palette and in the dialog of stop all', async (t) => {
  const platform = await startPlatformFor(t)
  const ids = [await create(platform, 'Ada'), await create(platform, 'Scout')]
  const statusOf = async () => Promise.all(ids.map(async (id) => (await getWorkspace(platform, id)).status))
  const page = await openPage(t, platform)
  const bar = page.getByRole('banner')
  await bar.getByRole('button', { name: 'Stop all' }).waitFor()
  assert.equal(await bar.getByRole('button', { name: 'Resume all' }).count(), 0)
  await platform.request('POST', '/stop')
  await bar.getByRole('button', { name: 'Resume all' }).waitFor()
  await page.reload()
  await bar.getByRole('button', { name: 'Stop all' }).click()
  const stopped = page.getByRole('dialog', { name: 'Everything is stopped' })
  await stopped.getByRole('button', { name: 'Resume all' }).click()
  const dialog = page.getByRole('dialog', { name: 'Resume all workspaces?' })
  await dialog.getByText('2 workspaces are paused: Ada, Scout').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  const other = await openPage(t, platform, { role: 'member' })
  await cardOf(other, String(ids[0])).getByText('paused').waitFor()
  await other.keyboard.press('Control+k')
  await other.getByRole('combobox').fill('resume all')
  await other.keyboard.press('Enter')
  await other.getByRole('dialog').getByRole('button', { name: 'Resume all' }).click()
  await waitUntil(async () => (await statusOf()).every((status) => status === 'online'))
  await bar.getByRole('button', { name: 'Resume all' }).waitFor({ state: 'detached' })
  const phone = await openPage(t, platform, { viewport: PHONE })
  await platform.request('POST', '/stop')
  await phone.getByRole('button', { name: 'More' }).click()
  await phone.getByRole('button', { name: 'Resume all' }).click()
  await phone
    .getByRole('dialog', { name: 'Resume all workspaces?' })
    .getByRole('button', { name: 'Resume all' })
    .click()
  await waitUntil(async () => (await statusOf()).every((status) => status === 'online'))
})

test('CV-10 a card that is paused or works says so when it needs a person too', async (t) => {
  const platform = await startPlatformFor(t)
  const failing = { max_attempts: 1, runtime_config: { fail: 'no space left' } }
  const id = await create(platform, 'Ada', failing)
  await platform.send(id, 'Check the backups')
  await platform.request('POST', `/workspaces/${id}/pause`)
  const page = await openPage(t, platform)
  const card = cardOf(page, id)
  await card.locator('[data-banner=needs]').getByText('A message failed for good').waitFor()
  await card.getByText('paused').waitFor()
  await page.getByRole('button', { name: 'Ada, needs you, paused' }).waitFor()
  await page.getByRole('button', { name: 'List' }).click()
  await page.getByRole('button', { name: 'Paused 1' }).click()
  await cardOf(page, id).getByText('paused · A message failed for good').waitFor()
  await page.getByRole('button', { name: 'Needs you 1' }).click()
  await cardOf(page, id).click()
  await page.getByRole('complementary', { name: 'Ada' }).getByText('needs you, paused · mock').waitFor()
})

test('CV-1 a viewer sees no button that would be refused', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await create(platform, 'Ada')
  const page = await openPage(t, platform, { role: 'viewer', hash: `#/w/${id}/details` })
  await page.getByRole('complementary', { name: 'Ada' }).waitFor()
  for (const name of ['Actions for Ada', 'Stop all', 'New workspace', 'Send', 'Restart', 'Save']) {
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name)
  }
  const phone = await openPage(t, platform, { role: 'viewer', viewport: PHONE })
  await phone.getByRole('button', { name: 'More' }).click()
  assert.equal(await phone.getByRole('button', { name: 'Stop all' }).count(), 0)
  const member = await openPage(t, platform, { role: 'member' })
  await member.getByRole('button', { name: 'Actions for Ada' }).click()
  await waitForValue(() => member.getByRole('menuitem').allTextContents(), ['Restart', 'Pause'])
})
