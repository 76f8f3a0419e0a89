/** The page and a platform that goes away and returns; and two browsers on one platform. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatform, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { cardOf, openPage } from './browser.ts'

const create = async (platform: PlatformUnderTest, name: string, more = {}) =>
  (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string

/** A platform that can be killed and started again on the same port and folder. */
async function startAgainAndAgain(t: TestContext) {
  const dataDir = temporaryDir(t)
  const first = await startPlatform({ dataDir })
  t.after(() => first.dispose())
  const restart = async () => {
    const next = await startPlatform({ dataDir, args: ['--port', new URL(first.url).port] })
    t.after(() => next.dispose())
    return next
  }
  return { first, restart }
}

test('CV-5 a platform killed with -9 and started again: the line says so, and the page heals without a reload', async (t) => {
  const { first, restart } = await startAgainAndAgain(t)
  const ada = await create(first, 'Ada')
  const page = await openPage(t, first)
  await cardOf(page, ada).waitFor()
  await page.evaluate('window.notReloaded = true')
  await first.stop('SIGKILL')
  await page.getByText('Reconnecting…').waitFor()
  await cardOf(page, ada).waitFor()
  const second = await restart()
  const scout = await create(second, 'Scout')
  await cardOf(page, scout).waitFor()
  await page.getByText('Reconnecting…').waitFor({ state: 'detached' })
  await second.request('PATCH', `/workspaces/${ada}`, { name: 'Ada Lovelace' })
  await cardOf(page, ada).getByText('Ada Lovelace').waitFor()
  assert.equal(await page.evaluate('window.notReloaded'), true)
})

test('CV-1 a second browser sees the card and its amber banner', async (t) => {
  const platform = await startPlatformFor(t)
  const [one, other] = [await openPage(t, platform), await openPage(t, platform, { role: 'viewer' })]
  const ada = await create(platform, 'Ada', { runtime_config: { delay: '1h' } })
  for (const page of [one, other]) await cardOf(page, ada).waitFor()
  await sendWithoutWaiting(platform, ada, 'count the backups')
  for (const page of [one, other]) {
    await cardOf(page, ada).locator('[data-banner=working]').getByText('count the backups').waitFor()
  }
})
