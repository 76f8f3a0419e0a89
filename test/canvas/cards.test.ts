/** Cards appear and change without a reload. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { cardOf, openPage, readStill, waitForValue } from './browser.ts'

test('CV-1 a card appears live, shows its task in amber while a turn runs, and leaves with its workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const page = await openPage(t, platform)
  const runtime_config = { delay: '1h' }
  const { body: ada } = await platform.request('POST', '/workspaces', {
    name: 'Ada',
    role: 'Backend engineer',
    runtime: 'mock',
    model: 'small',
    runtime_config,
  })
  const card = cardOf(page, ada.id)
  await card.getByText('Backend engineer').waitFor()
  await sendWithoutWaiting(platform, ada.id, 'run the migration tests')
  await card.locator('[data-banner=working]').getByText('run the migration tests').waitFor()
  await platform.request('PATCH', `/workspaces/${ada.id}`, { name: 'Ada Lovelace' })
  await card.getByText('Ada Lovelace').waitFor()
  await platform.request('DELETE', `/workspaces/${ada.id}?confirm=${ada.id}`)
  await card.waitFor({ state: 'detached' })
})

test('CV-1 RT-4 the amber banner shows a status text and the task of a heartbeat while no turn runs, and goes when they are cleared', async (t) => {
  const platform = await startPlatformFor(t)
  const { body: ada } = await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock' })
  const { body: laptop } = await platform.request('POST', '/workspaces', { name: 'Laptop', runtime: 'external' })
  const page = await openPage(t, platform)
  const status = (text: string) => platform.request('PUT', `/workspaces/${ada.id}/status`, { text })
  const heartbeat = (current_task: string) =>
    fetch(`${platform.url}/registry/heartbeat`, {
      method: 'POST',
      body: JSON.stringify({ workspace_id: laptop.id, current_task }),
      headers: { Authorization: `Bearer ${laptop.auth_token}`, 'Content-Type': 'application/json' },
    })
  const amber = (id: string) => cardOf(page, id).locator('[data-banner=working]')
  await cardOf(page, ada.id).getByText('idle').waitFor()
  await status('the nightly import runs')
  await heartbeat('Analyzing competitor data...')
  await amber(ada.id).getByText('the nightly import runs').waitFor()
  await amber(laptop.id).getByText('Analyzing competitor data...').waitFor()
  await status('')
  await heartbeat('')
  for (const id of [ada.id, laptop.id]) {
    await amber(id).waitFor({ state: 'detached' })
    await cardOf(page, id).getByText('idle').waitFor()
  }
})

test('CV-10 cards keep their place and height when a turn starts, a banner comes, a panel opens or a workspace is new', async (t) => {
  const platform = await startPlatformFor(t)
  const create = async (name: string, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string
  const lead = await create('Conductor', { role: 'Plans the release, hands out the work and reads each result' })
  const ids = [lead]
  for (const name of ['Bea', 'Cy', 'Dora', 'Eve', 'Finn']) {
    ids.push(await create(name, { parent_id: lead, runtime_config: { delay: '1h' } }))
  }
  const page = await openPage(t, platform)
  for (const id of ids) await cardOf(page, id).waitFor()
  const boxes = async (all = ids) => Promise.all(all.map((id) => cardOf(page, id).boundingBox()))
  const before = await readStill(boxes)
  await sendWithoutWaiting(
    platform,
    String(ids[1]),
    'run the migration tests and then those of the page, one after the other',
  )
  await cardOf(page, String(ids[1])).locator('[data-banner=working]').waitFor()
  await platform.request('POST', `/workspaces/${ids[2]}/pause`)
  await cardOf(page, String(ids[2])).getByText('paused').waitFor()
  await cardOf(page, String(ids[1])).click()
  await page.getByRole('complementary', { name: 'Bea' }).waitFor()
  await waitForValue(boxes, before)
  await page.getByRole('button', { name: 'Close' }).click()
  // By name it would be the first child.
  const ada = await create('Ada', { parent_id: lead })
  await cardOf(page, ada).waitFor()
  const [after, places] = [await readStill(() => boxes([...ids, ada])), new Set<string>()]
  for (const box of after) {
    assert.ok(box !== null)
    assert.equal(box.height, after[0]?.height)
    places.add(`${box.x} ${box.y}`)
  }
  assert.equal(places.size, 7, 'no card covers another one')
  const order = after
    .map((box, index) => ({ index, box }))
    .sort((a, b) => (a.box?.y ?? 0) - (b.box?.y ?? 0) || (a.box?.x ?? 0) - (b.box?.x ?? 0))
  assert.equal(order.at(-1)?.index, 6, 'the new card is the last')
})

test('CV-1 children stand below their parent', async (t) => {
  const platform = await startPlatformFor(t)
  const create = async (name: string, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string
  const parent = await create('Conductor')
  const children = [await create('Ada', { parent_id: parent }), await create('Scout', { parent_id: parent })]
  const page = await openPage(t, platform)
  const boxOf = async (id: string) => {
    const box = await readStill(() => cardOf(page, id).boundingBox())
    assert.ok(box !== null)
    return box
  }
  for (const id of [parent, ...children]) await cardOf(page, id).waitFor()
  const top = await boxOf(parent)
  for (const id of children) assert.ok((await boxOf(id)).y > top.y + top.height)
  await cardOf(page, parent).click()
  await page.getByRole('complementary', { name: 'Conductor' }).waitFor()
})

test('CV-5 a map of many cards mounts those in view first, and then every card and wire', async (t) => {
  const platform = await startPlatformFor(t)
  const create = async (name: string, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string
  const parents = [await create('Conductor'), await create('Editor')]
  for (let index = 0; index < 78; index++) await create(`Worker ${index}`, { parent_id: parents[index % 2] })
  const page = await openPage(t, platform)
  await page.evaluate(recordFirstCards)
  await page.getByRole('button', { name: 'Map' }).click()
  await page.locator('[data-workspace]').nth(79).waitFor({ state: 'attached' })
  await page.locator('.react-flow__edge').nth(77).waitFor({ state: 'attached' })
  const first = (await page.evaluate('window.firstCards')) as { readonly count: number; readonly inView: number }
  assert.ok(first.count < 80)
  assert.equal(first.inView, first.count)
})

/** Notes how many cards the map has at first, and how many of them are in view. */
const recordFirstCards = `
  const observer = new MutationObserver(() => {
    const cards = [...document.querySelectorAll('.react-flow [data-workspace]')]
    if (cards.length === 0) return
    observer.disconnect()
    const inView = cards.filter((card) => {
      const { left, top, right, bottom } = card.getBoundingClientRect()
      return right > 0 && bottom > 0 && left < innerWidth && top < innerHeight
    })
    window.firstCards = { count: cards.length, inView: inView.length }
  })
  observer.observe(document.body, { childList: true, subtree: true })
`

test('CV-1 the wire to a workspace is live while another one waits for it', async (t) => {
  const platform = await startPlatformFor(t)
  const gate = join(temporaryDir(t), 'go')
  const parent = await platform.exec('a2a delegate Ada "count the backups"', {
    name: 'Conductor',
    runtime_config: { pass_meta: 'true' },
  })
  const child = await platform.exec(`until [ -e ${gate} ]; do sleep 0.1; done; echo done`, {
    name: 'Ada',
    parent_id: parent,
  })
  const page = await openPage(t, platform)
  await cardOf(page, child).waitFor()
  const live = page.locator('.react-flow__edge.live')
  assert.equal(await live.count(), 0)
  await sendWithoutWaiting(platform, parent, 'go')
  await live.waitFor({ state: 'attached' })
  writeFileSync(gate, '')
  await live.waitFor({ state: 'detached' })
})
