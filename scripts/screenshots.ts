/**
 * `npm run screenshots` makes the pictures in `docs/images/`: each view of the page, light and dark, on a desktop and on a
 * phone, of platforms with made-up workspaces. It prints the name of each picture. `-- canvas` makes only those whose name
 * contains the word; `-- --out /tmp/x` writes to another folder.
 *
 * Look at every picture before you commit it.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findChromium } from '../test/canvas/chromium.ts'
import { type PlatformUnderTest, startPlatform } from '../test/harness/platform.ts'
import { seedMany, seedTeam, withAgents } from './screenshot-seed.ts'

const { values, positionals } = parseArgs({ options: { out: { type: 'string' } }, allowPositionals: true })
const folder = values.out ?? join(import.meta.dirname, '..', 'docs', 'images')

const SIZES = { desktop: { width: 1360, height: 760 }, phone: { width: 390, height: 844 } }
const SCHEMES = ['light', 'dark'] as const
/** For a picture to come to rest: fonts, a panel that opens, a list that loads. Nothing depends on it but the picture. */
const REST_MS = 1200

interface Shot {
  readonly name: string
  readonly platform: PlatformUnderTest
  readonly hash?: string
  readonly role?: 'admin' | 'none'
  readonly prepare?: (page: Page) => Promise<void>
  /** What is only on a desktop. */
  readonly onlyDesktop?: boolean
}

async function take(browser: Browser, shot: Shot): Promise<void> {
  const { name, platform, hash = '#/', role = 'admin', prepare, onlyDesktop = false } = shot
  if (positionals.length > 0 && !positionals.some((word) => name.includes(word))) return
  for (const [size, viewport] of Object.entries(SIZES)) {
    const isPhone = size === 'phone'
    if (onlyDesktop && isPhone) continue
    for (const colorScheme of SCHEMES) {
      const context = await browser.newContext({
        viewport,
        colorScheme,
        reducedMotion: 'reduce',
        deviceScaleFactor: 1,
        // On a touch screen the page gives no field the focus.
        hasTouch: isPhone,
        isMobile: isPhone,
      })
      const page = await context.newPage()
      if (role === 'none') await page.goto(platform.url)
      else {
        const { body } = await platform.request('POST', '/login-links', { role, name: 'Ana' })
        await page.goto(body.url)
        await page.getByRole('banner').waitFor()
        await page.evaluate(`location.assign(${JSON.stringify(hash)})`)
      }
      await delay(REST_MS)
      await prepare?.(page)
      if (prepare !== undefined) await delay(REST_MS)
      const file = `${name}-${size}-${colorScheme}.png`
      await page.screenshot({ path: join(folder, file) })
      console.log(file)
      await context.close()
    }
  }
}

/** The tabs of the panel, as the page has them. */
async function tabsOf(browser: Browser, platform: PlatformUnderTest, id: string): Promise<string[]> {
  const context = await browser.newContext({ viewport: SIZES.desktop })
  const page = await context.newPage()
  const { body } = await platform.request('POST', '/login-links', { role: 'admin', name: 'Ana' })
  await page.goto(body.url)
  await page.getByRole('banner').waitFor()
  await page.evaluate(`location.assign('#/w/${id}')`)
  await page.getByRole('tab').first().waitFor()
  const names = await page.getByRole('tab').evaluateAll((tabs) => tabs.map((tab) => tab.getAttribute('data-tab') ?? ''))
  await context.close()
  return names
}

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const browser = await chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox'] })
  const [empty, team, many] = [
    await startPlatform({ env: withAgents() }),
    await startPlatform({ env: withAgents() }),
    await startPlatform(),
  ]
  try {
    const { ada, mira } = await seedTeam(team)
    await seedMany(many)
    const shots: Shot[] = [
      { name: 'logged-out', platform: empty, role: 'none' },
      { name: 'first-run', platform: empty },
      { name: 'canvas', platform: team },
      { name: 'many', platform: many },
      { name: 'new-workspace', platform: team, hash: '#/new' },
      { name: 'needs-you', platform: team, hash: '#/needs' },
      { name: 'palette', platform: team, prepare: (page) => page.keyboard.press('Control+k') },
      {
        name: 'menu',
        platform: team,
        onlyDesktop: true,
        prepare: (page) => page.getByRole('button', { name: 'Actions for Ada' }).click(),
      },
    ]
    for (const tab of await tabsOf(browser, team, ada)) {
      shots.push({ name: `panel-${tab}`, platform: team, hash: `#/w/${ada}/${tab}` })
    }
    for (const tab of ['chat', 'activity', 'config'])
      shots.push({ name: `agent-${tab}`, platform: team, hash: `#/w/${mira}/${tab}` })
    for (const shot of shots) await take(browser, shot)
  } finally {
    await browser.close()
    for (const platform of [empty, team, many]) await platform.dispose()
  }
}

await main()
