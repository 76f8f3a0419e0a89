/** `axe-core` on every view, light and dark, on a desktop and on a phone: no serious issue. */
import { test } from 'node:test'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { checkAccessibility } from './axe.ts'
import { type OpenPageOptions, openPage, PHONE } from './browser.ts'

/** Each view: where it is, and a text that shows that it is there. */
const VIEWS: readonly { readonly name: string; readonly hash: (id: string) => string; readonly shows: string }[] = [
  { name: 'canvas', hash: () => '#/', shows: 'Ada' },
  { name: 'chat', hash: (id) => `#/w/${id}/chat`, shows: 'running' },
  { name: 'needs you', hash: () => '#/needs', shows: 'will show here' },
  { name: 'new workspace', hash: () => '#/new', shows: 'Runtime' },
  { name: 'activity', hash: (id) => `#/w/${id}/activity`, shows: 'Messages' },
  { name: 'delegations', hash: (id) => `#/w/${id}/delegations`, shows: 'No delegations yet' },
  { name: 'memory', hash: (id) => `#/w/${id}/memory`, shows: 'Add a memory' },
  { name: 'config', hash: (id) => `#/w/${id}/config`, shows: 'Schedules' },
  { name: 'usage', hash: (id) => `#/w/${id}/usage`, shows: 'Nothing used in these days' },
  { name: 'details', hash: (id) => `#/w/${id}/details`, shows: 'Address' },
]

const LOOKS: Readonly<Record<string, OpenPageOptions>> = {
  'on a desktop': {},
  'on a desktop, dark': { colorScheme: 'dark' },
  'on a phone': { viewport: PHONE },
  'on a phone, dark': { viewport: PHONE, colorScheme: 'dark' },
}

for (const [title, look] of Object.entries(LOOKS)) {
  test(`CV-5 axe-core finds no serious issue on any view ${title}`, async (t) => {
    const platform = await startPlatformFor(t)
    const id = await seed(platform)
    for (const { name, hash, shows } of VIEWS) {
      const page = await openPage(t, platform, { ...look, hash: hash(id) })
      await page.getByText(shows).first().waitFor()
      await checkAccessibility(t, page, name)
      await page.close()
    }
    const stranger = await openPage(t, platform, { ...look, role: 'none' })
    await stranger.getByText('Not logged in').waitFor()
    await checkAccessibility(t, stranger, 'logged out')
  })
}

async function seed(platform: PlatformUnderTest): Promise<string> {
  const create = async (name: string, more = {}) =>
    (await platform.request('POST', '/workspaces', { name, runtime: 'mock', ...more })).body.id as string
  const parent = await create('Conductor', { role: 'Plans the release, hands out the work' })
  const id = await create('Ada', { parent_id: parent, runtime_config: { delay: '1h' } })
  await sendWithoutWaiting(platform, id, 'run the migration tests')
  const paused = await create('Rollback drill')
  await platform.request('POST', `/workspaces/${paused}/pause`)
  await create('Old laptop', { runtime: 'external' })
  return id
}
