/** What the side panel of the web page reads and writes, on a running platform. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlatformUnderTest, withPlatform } from '../harness/platform.ts'

const mock = async (platform: PlatformUnderTest, more: object = {}): Promise<string> =>
  (await platform.request('POST', '/workspaces', { name: 'Ada', runtime: 'mock', ...more })).body.id

test(
  'CV-4 activity is read page by page from the newest entry to the oldest, each entry once',
  withPlatform(async (platform) => {
    const id = await mock(platform)
    for (const text of ['one', 'two', 'three']) await platform.send(id, text)
    const read = async (query: string) => (await platform.request('GET', `/workspaces/${id}/activity?${query}`)).body
    const all = (await read('limit=100')).activity
    const found: unknown[] = []
    for (let before = ''; ; ) {
      const page = await read(`newest=true&limit=2${before}`)
      if (page.first === undefined) break
      found.unshift(...page.activity)
      before = `&before=${page.first}`
    }
    assert.deepEqual(found, all)
    assert.deepEqual(Object.values((await read('titles=true')).titles), ['one', 'two', 'three'])
  }),
)

test(
  'CV-3 a file is written only while it has the version that was read',
  withPlatform(async (platform) => {
    const id = await mock(platform)
    const url = `${platform.url}/workspaces/${id}/files/system-prompt.md`
    const headers = { Authorization: `Bearer ${platform.token}` }
    const put = async (body: string, expected: string) =>
      (await fetch(url, { method: 'PUT', body, headers: { ...headers, 'If-Match': expected } })).status
    assert.equal(await put('one', '""'), 201)
    assert.equal(await put('other', '""'), 400)
    const version = (await fetch(url, { headers })).headers.get('etag') ?? ''
    assert.equal(await put('two', version), 200)
    assert.equal(await put('three', version), 400)
    assert.equal(await (await fetch(url, { headers })).text(), 'two')
  }),
)
