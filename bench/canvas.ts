/**
 * The page with 200 workspaces and 50 changes a second, as a list and as a map, against a bare React Flow page with the
 * same number of nodes and changes, in the same browser. For each: what the first load transfers, how soon after the HTML
 * the first card in view is painted, the longest task of the main thread while the page loads and after that, and how the
 * heap grows, after a forced collection each minute.
 *
 * `--minutes 10` measures for ten minutes each; half a minute by default. `--view map` measures only the map,
 * without the peer.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { findChromium } from '../test/canvas/chromium.ts'
import { type PlatformUnderTest, startPlatform } from '../test/harness/platform.ts'
import { waitUntil } from '../test/harness/wait.ts'
import { median } from './measure.ts'

const WORKSPACES = 200
const PARENTS = 10
const CHANGES_PER_SECOND = 50
const LOADS = 5
const WARM_UP_MS = 5000
const FIRST_LOAD_BYTES_MAX = 250_000
const FIRST_CARD_MS_MAX = 500
const TASK_MS_MAX = 100
/** Growth of the heap after a forced collection that counts as flat. */
const HEAP_GROWTH_BYTES_MAX = 3_000_000

const WEB = fileURLToPath(new URL('../web', import.meta.url))
const VIEWPORT = { width: 1360, height: 760 }

const MINUTE_MS = 60_000
const VIEWS = ['list', 'map'] as const

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '0.5' }, view: { type: 'string' } } })
const measureMs = Number(values.minutes) * MINUTE_MS
const views = VIEWS.filter((view) => values.view === undefined || values.view === view)

interface Contender {
  readonly name: string
  readonly url: string
  /** The element that counts as the first card. */
  readonly card: string
  readonly context: BrowserContext
}

interface Measured {
  readonly name: string
  readonly firstLoadBytes: number
  readonly firstCardMs: number
  readonly longestLoadTaskMs: number
  readonly longestTaskMs: number
  readonly tasksOver50Ms: number
  /** At the start, after each minute, and at the end. */
  readonly heaps: readonly number[]
}

/** Runs before the scripts of the page: notes long tasks, and when the first card in view is painted. */
const watchScript = (card: string): string => `
  window.__tasks = []
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.__tasks.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  const seen = new MutationObserver(() => {
    const isInView = (element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect()
      return right > 0 && bottom > 0 && left < innerWidth && top < innerHeight
    }
    if (![...document.querySelectorAll(${JSON.stringify(card)})].some(isInView)) return
    seen.disconnect()
    requestAnimationFrame(() => requestAnimationFrame(() => { window.__firstCard = performance.now() }))
  })
  seen.observe(document, { childList: true, subtree: true, attributeFilter: ['style'] })
`

async function measure({ name, url, card, context }: Contender): Promise<Measured> {
  const page = await context.newPage()
  await page.addInitScript(watchScript(card))
  const cardTimes: number[] = []
  for (let load = 0; load < LOADS; load++) {
    await page.goto('about:blank')
    await page.goto(url)
    await waitUntil(() => page.evaluate('window.__firstCard !== undefined'), 'the first card')
    cardTimes.push(
      Number(await page.evaluate('window.__firstCard - performance.getEntriesByType("navigation")[0].responseEnd')),
    )
  }
  const firstLoadBytes = await transferred(page)
  await delay(WARM_UP_MS)
  const loadTasks = await takeTasks(page)
  const tasks: number[] = []
  const heaps = [await heapBytes(page)]
  for (let leftMs = measureMs; leftMs > 0; leftMs -= MINUTE_MS) {
    await takeTasks(page)
    await delay(Math.min(leftMs, MINUTE_MS))
    tasks.push(...(await takeTasks(page)))
    heaps.push(await heapBytes(page))
  }
  await page.close()
  return {
    name,
    firstLoadBytes,
    firstCardMs: median(cardTimes),
    longestLoadTaskMs: Math.max(0, ...loadTasks),
    longestTaskMs: Math.max(0, ...tasks),
    tasksOver50Ms: tasks.length,
    heaps,
  }
}

/** The long tasks since the last call. */
const takeTasks = (page: Page): Promise<number[]> => page.evaluate('window.__tasks.splice(0)')

/** The HTML, scripts and styles of the load, each compressed with gzip. */
async function transferred(page: Page): Promise<number> {
  const urls = (await page.evaluate(
    `[location.href, ...performance.getEntriesByType('resource')
      .filter(({ initiatorType }) => ['script', 'link', 'css'].includes(initiatorType)).map(({ name }) => name)]`,
  )) as string[]
  let bytes = 0
  for (const url of new Set(urls.map((each) => each.split('#')[0] ?? each))) {
    const answer = await fetch(url)
    bytes += gzipSync(Buffer.from(await answer.arrayBuffer()), { level: 9 }).length
  }
  return bytes
}

async function heapBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  await session.detach()
  return usedSize
}

async function fill(platform: PlatformUnderTest): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < WORKSPACES; index++) {
    const parent = index < PARENTS ? {} : { parent_id: ids[index % PARENTS] }
    const { body } = await platform.request('POST', '/workspaces', {
      name: `Workspace ${index}`,
      role: `Does part ${index} of the work`,
      runtime: 'mock',
      ...parent,
    })
    ids.push(body.id)
  }
  return ids
}

/** Changes one workspace after another, so many times a second, until the signal. */
async function change(platform: PlatformUnderTest, ids: readonly string[], signal: AbortSignal): Promise<number> {
  const startMs = performance.now()
  let sent = 0
  const running = new Set<Promise<unknown>>()
  while (!signal.aborted) {
    const due = ((performance.now() - startMs) / 1000) * CHANGES_PER_SECOND
    for (; sent < due; sent++) {
      const call = platform.request('PUT', `/workspaces/${ids[sent % ids.length]}/status`, { text: `step ${sent}` })
      running.add(call)
      void call.finally(() => running.delete(call))
    }
    await delay(10)
  }
  await Promise.all(running)
  return sent
}

/** Builds the peer and serves it. */
async function servePeer() {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-bench-canvas-'))
  const args = [join(WEB, 'node_modules/vite/bin/vite.js'), 'build', join(WEB, 'bench-peer'), '--outDir', folder]
  const built = spawnSync(process.execPath, [...args, '--base', './', '--emptyOutDir', '--logLevel', 'error'], {
    cwd: WEB,
    stdio: 'inherit',
  })
  if (built.status !== 0) throw new Error('the bare React Flow page could not be built')
  const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0]
    const file = path === '/' || path === undefined ? '/index.html' : path
    try {
      response.setHeader('Content-Type', types[extname(file)] ?? 'text/plain').end(readFileSync(join(folder, file)))
    } catch {
      response.writeHead(404).end()
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/?nodes=${WORKSPACES}&rate=${CHANGES_PER_SECOND}`
  const close = () => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url, close }
}

async function measurePeer(browser: Browser): Promise<Measured> {
  const peer = await servePeer()
  try {
    const context = await browser.newContext({ viewport: VIEWPORT })
    return await measure({ name: 'bare React Flow', url: peer.url, card: '.react-flow__node', context })
  } finally {
    peer.close()
  }
}

async function openContext(
  browser: Browser,
  platform: PlatformUnderTest,
  view: (typeof VIEWS)[number],
): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: VIEWPORT })
  await context.addInitScript(`localStorage.setItem('molecule.view', '${view}')`)
  const { body } = await platform.request('POST', '/login-links', { role: 'member', name: view })
  const page = await context.newPage()
  await page.goto(body.url)
  await page.getByRole('banner').waitFor()
  await page.close()
  return context
}

function report(all: readonly Measured[]): void {
  for (const one of all) {
    console.log(
      `${one.name}: first load ${Math.round(one.firstLoadBytes / 1000)} kB gzipped, first card after ${Math.round(one.firstCardMs)} ms,` +
        ` longest task ${Math.round(one.longestLoadTaskMs)} ms of the load, then ${Math.round(one.longestTaskMs)} ms` +
        ` (${one.tasksOver50Ms} over 50 ms), heap ${one.heaps.map((bytes) => (bytes / 1e6).toFixed(2)).join(', ')} MB`,
    )
  }
}

function failures({ name, ...one }: Measured): string[] {
  const heapGrowthBytes = (one.heaps.at(-1) ?? 0) - (one.heaps[0] ?? 0)
  return [
    one.firstLoadBytes > FIRST_LOAD_BYTES_MAX && `${name} loads ${one.firstLoadBytes} bytes`,
    one.firstCardMs > FIRST_CARD_MS_MAX && `${name} shows its first card after ${Math.round(one.firstCardMs)} ms`,
    one.longestTaskMs > TASK_MS_MAX && `${name} has a task of ${Math.round(one.longestTaskMs)} ms`,
    heapGrowthBytes > HEAP_GROWTH_BYTES_MAX && `${name} grows by ${heapGrowthBytes} bytes`,
  ].filter((text) => text !== false)
}

async function main(): Promise<void> {
  const platform = await startPlatform()
  const browser = await chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox'] })
  const stop = new AbortController()
  try {
    const ids = await fill(platform)
    const changing = change(platform, ids, stop.signal)
    const ours: Measured[] = []
    for (const name of views) {
      const context = await openContext(browser, platform, name)
      ours.push(await measure({ name, url: platform.url, card: '[data-workspace]', context }))
    }
    stop.abort()
    console.log(`${await changing} changes were made`)
    report(ours)
    if (views.length === VIEWS.length) report([await measurePeer(browser)])
    const problems = ours.flatMap(failures)
    for (const problem of problems) console.error(problem)
    if (problems.length > 0) process.exitCode = 1
  } finally {
    stop.abort()
    await browser.close()
    await platform.dispose()
  }
}

await main()
