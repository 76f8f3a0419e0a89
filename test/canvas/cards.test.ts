/** Cards appear and change without a reload. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { cardOf, openPage } from './browser.ts'

test('CV-1 a card appears live, shows its task in amber while a turn runs, and leaves with its workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const page = await openPage(t, platform)
  const runtime_config = { delay: '1h' }
  const { body: ada } = await platform.request('POST', '/workspaces', {
    ...{ name: 'Ada', role: 'Backend engineer', runtime: 'mock', model: 'small', runtime_config },
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

test('CV-1 children stand below their parent', async (t) => {
  const platform = await startPlatformFor(t)
  const create = async (name: string, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string
  const parent = await create('Conductor')
  const children = [await create('Ada', { parent_id: parent }), await create('Scout', { parent_id: parent })]
  const page = await openPage(t, platform)
  const boxOf = async (id: string) => {
    const box = await cardOf(page, id).boundingBox()
    assert.ok(box !== null)
    return box
  }
  for (const id of [parent, ...children]) await cardOf(page, id).waitFor()
  const top = await boxOf(parent)
  for (const id of children) assert.ok((await boxOf(id)).y > top.y + top.height)
  await cardOf(page, parent).click()
  await page.getByRole('complementary', { name: 'Conductor' }).waitFor()
})

test('CV-1 the wire to a workspace is live while another one waits for it', async (t) => {
  const platform = await startPlatformFor(t)
  const gate = join(temporaryDir(t), 'go')
  const parent = await platform.exec('a2a delegate Ada "count the backups"', {
    ...{ name: 'Conductor', runtime_config: { pass_meta: 'true' } },
  })
  const child = await platform.exec(`until [ -e ${gate} ]; do sleep 0.1; done; echo done`, {
    ...{ name: 'Ada', parent_id: parent },
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
