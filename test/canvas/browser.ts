/**
 * A real Chromium on a real platform, for tests of the page. Each test file has one browser; each page has its own
 * session. A page fails its test when its script throws, when it breaks its own policy, or when it asks another host.
 */
import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { PlatformUnderTest } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { findChromium } from './chromium.ts'

/** Generous, because tests share the machine with other work. */
const WAIT_MS_MAX = 60_000

const DESKTOP = { width: 1360, height: 760 }
export const PHONE = { width: 390, height: 844 }

export interface OpenPageOptions {
  /** The role of the session; `none` = not logged in. */
  readonly role?: 'admin' | 'member' | 'viewer' | 'none'
  readonly viewport?: { readonly width: number; readonly height: number }
  readonly colorScheme?: 'light' | 'dark'
  /** Where the page opens: `#/w/<id>/chat`. */
  readonly hash?: string
  readonly context?: BrowserContextOptions
}

let browser: Promise<Browser> | undefined

/** The browser of this test file. */
function openBrowser(): Promise<Browser> {
  browser ??= findChromium().then((executablePath) => chromium.launch({ executablePath, args: ['--no-sandbox'] }))
  return browser
}

after(async () => (await browser)?.close())

/** Opens the page of the platform in a session of its own. */
export async function openPage(
  t: TestContext,
  platform: PlatformUnderTest,
  options: OpenPageOptions = {},
): Promise<Page> {
  const { role = 'admin', viewport = DESKTOP, colorScheme = 'light', hash = '', context: more } = options
  const context = await (await openBrowser()).newContext({ viewport, colorScheme, reducedMotion: 'reduce', ...more })
  t.after(() => context.close())
  context.setDefaultTimeout(WAIT_MS_MAX)
  watchFaults(t, context, platform.url)
  const page = await context.newPage()
  await page.goto(role === 'none' ? `${platform.url}/${hash}` : await makeLoginLink(platform, role))
  if (role === 'none') return page
  await page.getByRole('banner').waitFor()
  if (hash !== '') await page.evaluate(`location.assign(${JSON.stringify(hash)})`)
  return page
}

export async function makeLoginLink(platform: PlatformUnderTest, role = 'admin', name = role): Promise<string> {
  const { status, body } = await platform.request('POST', '/login-links', { role, name })
  assert.equal(status, 201, JSON.stringify(body))
  // The browser opens it here, also where its public URL is another one.
  return `${platform.url}/${new URL(body.url).hash}`
}

/** The card of a workspace on the canvas. */
export const cardOf = (page: Page, workspaceId: string) => page.locator(`[data-workspace="${workspaceId}"]`)

/**
 * Reads until the page shows the value, and then says what it showed last. A single look may come before the page has
 * rendered what a test waits for: counts, values of fields, boxes and styles are read with this.
 */
export async function waitForValue<T>(read: () => T | Promise<T>, expected: T): Promise<void> {
  let last: T | undefined
  await waitUntil(
    async () => {
      last = await read()
      return isDeepStrictEqual(last, expected)
    },
    () => `${JSON.stringify(last)} is not ${JSON.stringify(expected)}`,
  )
}

/** The value once two looks in a row have found the same: of places on a page that may still move. */
export async function readStill<T>(read: () => Promise<T>): Promise<T> {
  let last = await read()
  await waitUntil(async () => {
    const before = last
    last = await read()
    return isDeepStrictEqual(last, before)
  }, 'the page moves no more')
  return last
}

/** Errors of the console that the page cannot avoid: the browser writes one for each request that is refused. */
const EXPECTED_ERRORS = /Failed to load resource|WebSocket connection to/

function watchFaults(t: TestContext, context: BrowserContext, url: string): void {
  const faults: string[] = []
  context.on('weberror', (error) => faults.push(String(error.error())))
  context.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED_ERRORS.test(message.text())) faults.push(message.text())
  })
  context.on('request', (request) => {
    if (/^https?:/.test(request.url()) && !request.url().startsWith(`${url}/`)) faults.push(`asked ${request.url()}`)
  })
  t.after(() => assert.deepEqual(faults, []))
}
