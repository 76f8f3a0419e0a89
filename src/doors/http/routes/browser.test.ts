import assert from 'node:assert/strict'
import test from 'node:test'
import { type OpenDoor, openDoor } from '../../../../test/harness/open-door.ts'

const login = ({ sendRequest }: OpenDoor, code: unknown, headers: Record<string, string> = {}) =>
  sendRequest('/login', { method: 'POST', headers, body: JSON.stringify({ code }) })

test('PL-1 the code of the link is exchanged once for a cookie that scripts cannot read', async (t) => {
  const opened = await openDoor(t)
  const code = opened.fakePlatform.tokens.issueLoginCode()
  const answer = await login(opened, code, { origin: opened.url })
  assert.equal(answer.status, 204)
  const cookie = String(answer.headers['set-cookie']?.[0])
  for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=3600']) {
    assert.ok(cookie.split('; ').includes(attribute), attribute)
  }
  assert.ok(cookie.startsWith(`molecule_session_${new URL(opened.url).port}=`))
  const headers = { cookie: cookie.split(';')[0] ?? '' }
  assert.equal((await opened.sendRequest('/workspaces', { headers })).status, 200)
  const again = await login(opened, code)
  assert.equal(again.status, 401)
  assert.match(again.json.error.message, /already used or has expired/)
})

test('logout revokes the session and clears the cookie', async (t) => {
  const opened = await openDoor(t)
  const { headers } = await login(opened, opened.fakePlatform.tokens.issueLoginCode())
  const cookie = String(headers['set-cookie']?.[0]).split(';')[0] ?? ''
  const stranger = await opened.sendRequest('/logout', {
    method: 'POST',
    headers: { cookie, origin: 'http://evil.example' },
  })
  assert.equal(stranger.status, 403)
  const out = await opened.sendRequest('/logout', { method: 'POST', headers: { cookie, origin: opened.url } })
  assert.equal(out.status, 204)
  assert.match(String(out.headers['set-cookie']?.[0]), /Max-Age=0/)
  assert.equal((await opened.sendRequest('/workspaces', { headers: { cookie } })).status, 401)
})

test('a login by a foreign page, or without a valid code, is refused', async (t) => {
  const opened = await openDoor(t)
  const code = opened.fakePlatform.tokens.issueLoginCode()
  assert.equal((await login(opened, code, { origin: 'http://evil.example' })).status, 403)
  for (const wrong of [7, '', null, 'x'.repeat(300)]) assert.equal((await login(opened, wrong)).status, 400)
  assert.equal((await login(opened, 'guess')).status, 401)
  assert.equal((await login(opened, code)).status, 204)
})

test('CV-1 the page and its files are served compressed, with a policy that allows nothing inline', async (t) => {
  const { sendRequest } = await openDoor(t)
  const page = await sendRequest('/')
  assert.equal(page.status, 200)
  assert.match(String(page.headers['content-type']), /^text\/html/)
  assert.match(String(page.headers['content-security-policy']), /^default-src 'self'; .*frame-ancestors 'none'/)
  assert.doesNotMatch(String(page.headers['content-security-policy']), /unsafe/)
  assert.equal(page.headers['referrer-policy'], 'no-referrer')
  assert.equal(page.headers['x-content-type-options'], 'nosniff')
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.doesNotMatch(page.text, /<style|style=|<script>|\son\w+=|https?:/)
  const references = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => String(path))
  assert.ok(references.some((path) => path.endsWith('.js')) && references.some((path) => path.endsWith('.css')))
  for (const path of references) {
    const file = await sendRequest(path, { headers: { 'accept-encoding': 'gzip, br' } })
    assert.equal(file.status, 200, path)
    assert.equal(file.headers['content-encoding'], 'br')
    const plain = await sendRequest(path, { headers: { 'accept-encoding': 'br;q=0, gzip;q=0' } })
    assert.equal(plain.headers['content-encoding'], undefined)
    if (path.startsWith('/assets/')) assert.match(String(file.headers['cache-control']), /immutable/)
  }
  assert.equal((await sendRequest('/assets/..%2Findex.html')).status, 404)
})
