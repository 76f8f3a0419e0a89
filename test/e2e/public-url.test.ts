/** A platform that people reach by another name than its own: through reverse proxies, and by the name of its machine. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startReverseProxy } from '../fakes/reverse-proxy.ts'
import { connectSocket } from '../harness/clients/socket-client.ts'
import { runCommand } from '../harness/command.ts'
import { type DoorRequest, sendTo } from '../harness/open-door.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const PUBLIC = 'https://molecule.example'
const HOST = { host: 'molecule.example' }

/** What a browser does with a login link: it sends the code of the fragment from the page at the link. */
const logIn = (url: string, link: string, origin = PUBLIC) =>
  sendTo(`${url}/login`, {
    method: 'POST',
    headers: { ...HOST, origin, 'content-type': 'application/json' },
    body: JSON.stringify({ code: new URL(link).hash.slice(1) }),
  })

const linkOf = (platform: PlatformUnderTest) => /log in +(\S+)/.exec(platform.output())?.[1] ?? ''

for (const host of ['kept', 'rewritten'] as const) {
  const behindProxy = async (t: TestContext) => {
    const platform = await startPlatformFor(t, { args: ['--public-url', PUBLIC] })
    return { platform, proxy: await startReverseProxy(t, { target: platform.url, host }) }
  }

  test(`PL-14 behind a proxy with the Host ${host}, the login link opens, and the session changes and listens`, async (t) => {
    const { platform, proxy } = await behindProxy(t)
    const link = linkOf(platform)
    assert.equal(new URL(link).origin, PUBLIC)
    const page = await sendTo(`${proxy}/`, { headers: HOST })
    assert.equal(page.status, 200)
    const { status, headers } = await logIn(proxy, link)
    const [cookie = ''] = headers['set-cookie'] ?? []
    assert.equal(status, 204)
    assert.match(cookie, /; Secure; .*HttpOnly; SameSite=Strict$/)
    const session = { ...HOST, cookie: cookie.split(';')[0] ?? '', 'content-type': 'application/json' }
    const create = (origin: string) =>
      sendTo(`${proxy}/workspaces`, {
        method: 'POST',
        headers: { ...session, origin },
        body: JSON.stringify({ name: 'far', runtime: 'external' }),
      })
    const made = await create(PUBLIC)
    assert.equal(made.status, 201, made.text)
    assert.match(made.json.connect, / --api-url https:\/\/molecule\.example$/)
    const socket = await connectSocket(proxy, { protocols: ['molecule'], headers: session, origin: PUBLIC })
    t.after(() => socket.socket.terminate())
    socket.send({ subscribe: { [made.json.id]: null, _platform: null } })
    await waitUntil(() => socket.messages.length > 0, 'the socket gets events')

    for (const origin of [
      'https://evil.example',
      'http://molecule.example:81',
      'https://molecule.example.evil.example',
    ]) {
      const refused = await create(origin)
      assert.equal(refused.status, 403, origin)
      assert.match(refused.json.error.hint, /--public-url/)
      await assert.rejects(connectSocket(proxy, { protocols: ['molecule'], headers: session, origin }), /403/)
    }
    const another = (await runCommand(['login'], { env: { MOLECULE_HOME: platform.dataDir } })).out
    assert.equal((await logIn(proxy, another.split('\n')[0] ?? '', 'https://evil.example')).status, 403)
  })

  test(`PL-14 behind a proxy with the Host ${host}, cards and printed commands have the public URL`, async (t) => {
    const { platform, proxy } = await behindProxy(t)
    const env = { MOLECULE_HOME: platform.dataDir }
    const created = await runCommand(['workspace', 'create', 'far', '--runtime', 'external'], { env })
    assert.match(created.out, /connect .* --api-url https:\/\/molecule\.example\n/)
    assert.match((await runCommand(['login'], { env })).out, /^https:\/\/molecule\.example\/#/)
    const id = await platform.exec('cat')
    const card = await sendTo(`${proxy}/workspaces/${id}/a2a/.well-known/agent-card.json`, { headers: HOST })
    assert.equal(card.json.url, `${PUBLIC}/workspaces/${id}/a2a`)
    const { body } = await platform.request('GET', `/registry/discover/${id}`)
    assert.match(JSON.stringify(body), /https:\/\/molecule\.example\/workspaces/)
  })
}

test('PL-14 a name that the platform does not know is refused with the setting that makes it known', async (t) => {
  const platform = await startPlatformFor(t)
  const ask = (host: string) => sendTo(`${platform.url}/version`, { headers: { host }, token: platform.token })
  for (const [host, advised] of [
    ['box.lan:8080', 'http://box.lan:8080'],
    ['molecule.example', 'https://molecule.example'],
  ] as const) {
    const { status, json } = await ask(host)
    assert.equal(status, 403)
    assert.match(json.error.message, new RegExp(`--public-url ${advised}$`))
    assert.match(json.error.hint, /MOLECULE_PUBLIC_URL/)
    assert.doesNotMatch(JSON.stringify(json), /token/)
  }
  await assert.rejects(connectSocket(platform.url, { headers: { host: 'box.lan' } }), /403/)
})

test('PL-14 several public URLs are names of the platform; the first one is in its links', async (t) => {
  const env = { MOLECULE_PUBLIC_URL: 'http://box.lan:8080,https://molecule.example' }
  const platform = await startPlatformFor(t, { env })
  for (const host of ['box.lan:8080', 'molecule.example', new URL(platform.url).host]) {
    const request: DoorRequest = { method: 'POST', headers: { host }, token: platform.token }
    const { status, json } = await sendTo(`${platform.url}/login-links`, request)
    assert.equal(status, 201, host)
    assert.equal(new URL(json.url).origin, 'http://box.lan:8080')
  }
  const plain = await logIn(platform.url, linkOf(platform), 'http://box.lan:8080')
  assert.equal(plain.status, 204)
  assert.doesNotMatch(String(plain.headers['set-cookie']), /Secure/)
})

test('PL-14 a public URL that no link can use stops the start with the reason', async () => {
  for (const [url, problem] of [
    ['molecule.example', /--public-url.*https:\/\/molecule\.example\.org/],
    ['https://example.org/molecule', /--public-url.*has no path/],
    ['https://me:secret@example.org', /--public-url.*must be a URL/],
  ] as const) {
    const { code, err } = await runCommand(['up', '--port', '0', '--public-url', url])
    assert.equal(code, 2)
    assert.match(err, problem)
  }
})

test('PL-14 a trusted proxy names the caller', async (t) => {
  const { url } = await startPlatformFor(t, { args: ['--trusted-proxy', '127.0.0.0/8'] })
  const proxy = await startReverseProxy(t, { target: url, host: 'rewritten' })
  const wrong = async (from: string) =>
    (await sendTo(`${proxy}/version`, { token: 'nope', headers: { 'x-forwarded-for': from } })).status
  const flood = await Promise.all(Array.from({ length: 80 }, () => wrong('10.9.9.9, 203.0.113.7')))
  assert.ok(flood.includes(429))
  // The caller chooses all but the last address, so it cannot pass for another machine.
  assert.equal(await wrong('10.8.8.8, 203.0.113.7'), 429)
  assert.equal(await wrong('203.0.113.8'), 401)
})

test('PL-14 a trusted proxy names host and scheme of the caller; without trust its headers do not count', async (t) => {
  const openLink = async (args: readonly string[], host: string) => {
    const { url, token } = await startPlatformFor(t, { args })
    const headers = { 'x-forwarded-host': host, 'x-forwarded-proto': 'https' }
    const proxy = await startReverseProxy(t, { target: url, host: 'rewritten', headers })
    const { status, json } = await sendTo(`${proxy}/login-links`, { method: 'POST', token })
    return status === 201 ? new URL(json.url).origin : json.error.message
  }
  const trust = ['--trusted-proxy', '::1', '--trusted-proxy', '127.0.0.1']
  assert.equal(await openLink(trust, 'localhost:9443'), 'https://localhost:9443')
  assert.match(await openLink(trust, 'molecule.example'), /^"molecule\.example" is not a name of this platform/)
  assert.match(await openLink([], 'molecule.example'), /^http:\/\/127\.0\.0\.1:\d+$/)
})
