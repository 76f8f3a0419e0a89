/** What a browser does with an answer of the platform: a file of an agent never runs, and no answer is kept. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'

const SCRIPT = 'alert(document.cookie)'

const get = ({ url, token }: PlatformUnderTest, path: string, headers: Record<string, string> = {}) =>
  fetch(`${url}${path}`, { headers: { Authorization: `Bearer ${token}`, ...headers } })

test('RE-9 PL-17 a file of an agent is no page, no script and no style of the platform', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const files = [
    ['text/html', 'text/plain; charset=utf-8'],
    ['text/javascript', 'text/plain; charset=utf-8'],
    ['TEXT/CSS', 'text/plain; charset=utf-8'],
    ['text/xml', 'text/plain; charset=utf-8'],
    ['application/javascript', 'application/octet-stream'],
    ['application/xhtml+xml', 'application/octet-stream'],
    ['application/wasm', 'application/octet-stream'],
    ['image/svg+xml', 'image/svg+xml'],
    ['image/png', 'image/png'],
    ['application/pdf', 'application/pdf'],
  ] as const
  const sent = platform.send(worker.workspaceId, 'send me files')
  const parts = files.map(([mediaType]) => ({ raw: Buffer.from(SCRIPT).toString('base64'), mediaType }))
  await (await worker.lease()).answer('here', { artifacts: [{ artifactId: 'files', parts }] })
  const { id } = await sent
  for (const [index, [given, type]] of files.entries()) {
    const { status, headers } = await get(platform, `/tasks/${id}/artifacts/files?part=${index}`)
    assert.equal(status, 200)
    assert.equal(headers.get('content-type'), type, given)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.match(headers.get('content-disposition') ?? '', /^attachment;/)
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'; sandbox/)
  }
})

test('RE-9 an answer that depends on a cookie or a token is kept by no browser and no proxy', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat', { name: 'Ada' })
  const { body: link } = await platform.request('POST', '/login-links', { role: 'admin', name: 'admin' })
  const login = await fetch(`${platform.url}/login`, {
    method: 'POST',
    body: JSON.stringify({ code: new URL(link.url).hash.slice(1) }),
  })
  assert.equal(login.headers.get('cache-control'), 'no-store')
  const [cookie = ''] = (login.headers.get('set-cookie') ?? '').split(';')
  const paths = ['/me', '/workspaces', `/workspaces/${id}`, '/tokens', '/needs-you', '/tasks/none', '/nothing']
  paths.push(`/workspaces/${id}/conversations`, `/workspaces/${id}/files/config.yaml`, `/workspaces/${id}/activity`)
  paths.push('/a2a/Ada/.well-known/agent-card.json', '/metrics')
  for (const path of paths) {
    for (const headers of [{ Cookie: cookie, Authorization: '' }, {} as Record<string, string>]) {
      const answer = await get(platform, path, headers)
      assert.equal(answer.headers.get('cache-control'), 'no-store', `${answer.status} ${path}`)
    }
  }
  // The name of an asset is its hash.
  const page = await (await get(platform, '/')).text()
  const [asset = ''] = /\/assets\/[\w.-]+\.js/.exec(page) ?? []
  assert.match((await get(platform, asset)).headers.get('cache-control') ?? '', /immutable/)
})
