import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, getDefaultAutoSelectFamily, setDefaultAutoSelectFamily } from 'node:net'
import { test } from 'node:test'
import { setImmediate as settled } from 'node:timers/promises'
import { serve } from '../../test/harness/loopback-server.ts'
import { MoleculeError } from '../errors.ts'
import { createAllowList } from './ip-addresses.ts'
import { createOutbound, type OutboundOptions, type ResolvedAddress } from './outbound.ts'

const PUBLIC: ResolvedAddress = { address: '93.184.215.14', family: 4 }
const LOOPBACK: ResolvedAddress = { address: '127.0.0.1', family: 4 }

const hello = (_request: IncomingMessage, response: ServerResponse) => void response.end('hello')

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof MoleculeError, `it was not refused: ${String(error)}`)
  assert.equal(error.code, 'forbidden', error.message)
  return error.message
}

const names = (table: Record<string, ResolvedAddress[]>): NonNullable<OutboundOptions['resolve']> => {
  return async (name) => table[name] ?? []
}

test('URLs of internal hosts are refused with the reason, also in decimal, octal, hex and IPv6 form', async () => {
  const outbound = createOutbound({ resolve: names({ 'inside.test': [PUBLIC, LOOPBACK], localhost: [LOOPBACK] }) })
  const refused: [string, RegExp][] = [
    ['http://127.0.0.1:80/', /loopback/],
    ['http://2130706433/', /loopback/],
    ['http://0177.0.0.1/', /loopback/],
    ['http://0x7f.1/', /loopback/],
    ['http://127.1/', /loopback/],
    ['http://0/', /unspecified/],
    ['http://localhost/', /localhost does not have a public address/],
    ['http://inside.test/', /inside.test does not have a public address/],
    ['http://[::1]/', /loopback/],
    ['http://[::ffff:10.0.0.1]/', /private/],
    ['http://[::ffff:a9fe:a9fe]/', /link-local/],
    ['http://169.254.169.254/latest/meta-data', /metadata/],
    ['ftp://example.org/', /neither http nor https/],
    ['file:///etc/passwd', /neither http nor https/],
    ['http://ada:secret@example.org/', /user name or password/],
    ['http://inside.test/secret?signature=secret', /inside.test does not have a public address/],
    ['no url', /not a URL/],
  ]
  for (const [url, reason] of refused) {
    const message = await refusal(outbound.check(url))
    assert.match(message, reason, url)
    assert.ok(!message.includes('secret'))
    if (!/^http:\/\/[\d[]/.test(url)) assert.doesNotMatch(message, /127\.|loopback|private/, 'a name tells no address')
    assert.match(await refusal(outbound.send({ url })), reason, url)
  }
  await createOutbound({ resolve: names({ 'example.org': [PUBLIC] }) }).check('https://example.org/hook')
})

test('an address of the allow list without a range opens that address alone', () => {
  const list = createAllowList(['10.0.0.1', 'fd00::1'])
  for (const address of ['10.0.0.1', 'fd00::1']) assert.ok(list.allowsAddress(address), address)
  for (const address of ['10.0.0.2', 'fd00::2']) assert.ok(!list.allowsAddress(address), address)
})

test('the allow list opens its ranges and names only', async (t) => {
  const { url, port } = await serve(t, hello)
  const byRange = createOutbound({ allow: ['127.0.0.1/32'] })
  assert.equal(await (await byRange.send({ url })).text(), 'hello')
  assert.match(await refusal(byRange.check('http://127.0.0.2/')), /loopback/)
  const resolve = names({ 'hook.test': [LOOPBACK], 'other.test': [LOOPBACK] })
  const byName = createOutbound({ allow: ['Hook.test'], resolve })
  assert.equal(await (await byName.send({ url: `http://hook.test:${port}/` })).text(), 'hello')
  assert.match(await refusal(byName.check(`http://other.test:${port}/`)), /--allow-outbound/)
  for (const entry of ['10.0.0.0/33', 'a b'])
    assert.throws(() => createAllowList([entry]), { code: 'bad_config', message: /neither a host name nor a range/ })
})

test('an answer has at most 10 MB unless the caller says otherwise', async (t) => {
  const limit = 10 * 1024 * 1024
  const { url } = await serve(t, ({ url: path }, response) => {
    response.end(Buffer.alloc(limit + (path === '/over' ? 1 : 0), 'x'))
  })
  const outbound = createOutbound({ allow: ['127.0.0.1'] })
  assert.equal((await (await outbound.send({ url })).text()).length, limit)
  await assert.rejects(async () => (await outbound.send({ url: `${url}/over` })).text(), { code: 'too_large' })
})

test('the connection goes to the checked address, and the Host header keeps the name', async (t) => {
  const { port, visits } = await serve(t, hello)
  let asked = 0
  const resolve = async () => {
    asked += 1
    return asked === 1 ? [LOOPBACK] : [{ address: '10.255.255.1', family: 4 } as const]
  }
  const outbound = createOutbound({ allow: ['127.0.0.1'], resolve })
  assert.equal(await (await outbound.send({ url: `http://rebinding.test:${port}/` })).text(), 'hello')
  assert.equal(asked, 1)
  assert.equal(visits[0]?.headers.host, `rebinding.test:${port}`)
  assert.match(await refusal(outbound.send({ url: `http://rebinding.test:${port}/` })), /not have a public address/)
})

test('over https the handshake has the name, and the address is still the checked one', async (t) => {
  const seen: string[] = []
  const server = createTlsServer({
    SNICallback(name, callback) {
      seen.push(name)
      callback(new Error('no certificate is needed to see who was called'))
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const outbound = createOutbound({ allow: ['127.0.0.1'], resolve: names({ 'hook.test': [LOOPBACK] }) })
  await assert.rejects(outbound.send({ url: `https://hook.test:${port}/` }), { code: 'timeout', retryable: true })
  assert.deepEqual(seen, ['hook.test'])
})

test('a name that was public at its check is checked again at its use', async (t) => {
  const { port, visits } = await serve(t, hello)
  let asked = 0
  const outbound = createOutbound({ resolve: async () => [asked++ === 0 ? PUBLIC : LOOPBACK] })
  await outbound.check(`http://rebinding.test:${port}/`)
  assert.match(await refusal(outbound.send({ url: `http://rebinding.test:${port}/` })), /not have a public address/)
  assert.equal(visits.length, 0)
})

test('PL-5 a name that cannot be resolved yet passes the check, and is checked at its use', async (t) => {
  const { port, visits } = await serve(t, hello)
  const url = `http://later.test:${port}/`
  for (const addresses of [undefined, []]) {
    let found: readonly ResolvedAddress[] | undefined = addresses
    const resolve = async () => found ?? Promise.reject(Object.assign(new Error('down'), { code: 'EAI_AGAIN' }))
    const outbound = createOutbound({ resolve })
    await outbound.check(url)
    await assert.rejects(outbound.send({ url }), { code: 'timeout', retryable: true, message: /later\.test/ })
    found = [LOOPBACK]
    assert.match(await refusal(outbound.send({ url })), /not have a public address/)
  }
  assert.equal(visits.length, 0)
})

test('each redirect is checked, goes to another origin without credentials, and their number is limited', async (t) => {
  const target = await serve(t, hello)
  const inside = await serve(t, (_request, response) =>
    response.writeHead(302, { location: `http://localhost:${target.port}/` }).end(),
  )
  const resolve = names({ localhost: [{ address: '127.0.0.1', family: 4 }] })
  const url = `http://127.0.0.1:${inside.port}/`
  const headers = { Authorization: 'Bearer secret', Accept: 'text/plain' }
  assert.match(await refusal(createOutbound({ allow: ['203.0.113.1'], resolve }).send({ url, headers })), /loopback/)
  // The admin trusts the named host, not the target of its redirect.
  assert.match(
    await refusal(createOutbound({ resolve }).send({ url, headers, trusted: true })),
    /localhost does not have/,
  )
  const toElsewhere = createOutbound({ allow: ['localhost'], resolve })
  assert.equal(await (await toElsewhere.send({ url, headers, trusted: true })).text(), 'hello')
  assert.equal(inside.visits.at(-1)?.headers.authorization, 'Bearer secret')
  assert.equal(target.visits[0]?.headers.authorization, undefined)
  assert.equal(target.visits[0]?.headers.accept, 'text/plain')
  const round = await serve(t, (_request, response) => response.writeHead(307, { location: '/' }).end())
  const ring = createOutbound().send({ url: round.url, trusted: true, method: 'POST', body: 'x', headers })
  assert.match(await refusal(ring), /more than 3 times/)
  assert.equal(round.visits.length, 4)
  assert.equal(round.visits[3]?.headers.authorization, 'Bearer secret')
})

test('a redirect from an allowed host to a forbidden one is refused before a request', async (t) => {
  const target = await serve(t, hello)
  const { url } = await serve(t, (_request, response) =>
    response.writeHead(308, { location: `http://[::ffff:127.0.0.1]:${target.port}/` }).end(),
  )
  const outbound = createOutbound({ allow: ['localhost'], resolve: names({ localhost: [LOOPBACK] }) })
  const body = '{}'
  const from = url.replace('127.0.0.1', 'localhost')
  assert.match(await refusal(outbound.send({ url: from, method: 'POST', body })), /loopback/)
  assert.equal(target.visits.length, 0)
})

test('silence, slowness, size and a closed port each have their own error', async (t) => {
  const silent = await serve(t, () => undefined)
  const slow = await serve(t, (_request, response) => void response.writeHead(200).write('begun'))
  const large = await serve(t, (_request, response) => void response.end('x'.repeat(2000)))
  const outbound = createOutbound()
  const failure = async (work: Promise<{ text(): Promise<string> }>) => {
    const error = await work.then((answer) => answer.text()).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof MoleculeError, String(error))
    return [error.code, error.retryable]
  }
  const trusted = true
  assert.deepEqual(await failure(outbound.send({ url: silent.url, trusted, headersMs: 50 })), ['timeout', true])
  assert.deepEqual(await failure(outbound.send({ url: slow.url, trusted, totalMs: 100 })), ['timeout', true])
  assert.deepEqual(await failure(outbound.send({ url: large.url, trusted, bytesMax: 1000 })), ['too_large', false])
  assert.deepEqual(await failure(outbound.send({ url: 'http://127.0.0.1:1/', trusted })), ['timeout', true])
  const gone = AbortSignal.abort()
  assert.deepEqual(await failure(outbound.send({ url: large.url, trusted }, gone)), ['canceled', false])
})

test('a GET follows every redirect, a POST only those that keep it, and other answers with a location are answers', async (t) => {
  const { url } = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1))
    if (status === 0) return void response.end(request.method)
    response.writeHead(status, { Location: '/0' }).end()
  })
  const followed = async (method: 'GET' | 'POST' | undefined) => {
    const outbound = createOutbound()
    const found: number[] = []
    for (const status of [201, 300, 301, 302, 303, 304, 305, 307, 308]) {
      const answer = await outbound.send({ url: `${url}/${status}`, trusted: true, ...(method && { method }) })
      const isTarget = answer.status === 200
      assert.deepEqual([answer.status, await answer.text()], isTarget ? [200, method ?? 'GET'] : [status, ''])
      if (isTarget) found.push(status)
    }
    return found
  }
  assert.deepEqual(await followed(undefined), [301, 302, 303, 307, 308])
  assert.deepEqual(await followed('GET'), [301, 302, 303, 307, 308])
  assert.deepEqual(await followed('POST'), [307, 308])
})

test('three redirects are followed, and another origin gets only the headers that describe the request', async (t) => {
  const target = await serve(t, (_request, response) => response.end('there'))
  const { url, visits } = await serve(t, (request, response) => {
    const hop = Number(request.url?.slice(1))
    response.writeHead(302, { Location: hop < 2 ? `/${hop + 1}` : target.url }).end()
  })
  const harmless = { Accept: 'a/b', 'Content-Type': 'c/d', 'A2A-Version': '1.0', 'A2A-Extensions': 'e' }
  const headers = { ...harmless, Authorization: 'Bearer secret', Cookie: 'secret', 'X-Key': 'secret' }
  const answer = await createOutbound().send({ url: `${url}/0`, trusted: true, headers })
  assert.equal(await answer.text(), 'there')
  assert.deepEqual(
    visits.map((visit) => [visit.headers.authorization, visit.headers['x-key']]),
    Array.from({ length: 3 }, () => ['Bearer secret', 'secret']),
  )
  const { host, connection, ...received } = target.visits[0]?.headers ?? {}
  assert.deepEqual(received, { accept: 'a/b', 'content-type': 'c/d', 'a2a-version': '1.0', 'a2a-extensions': 'e' })
})

test('the connection of a redirect is closed, although its body never ends', async (t) => {
  const closed = Promise.withResolvers<void>()
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/there') return void closed.promise.then(() => response.end('there'), assert.fail)
    response.once('close', () => closed.resolve())
    response.writeHead(302, { Location: '/there' }).write('endless')
  })
  const answer = await createOutbound().send({ url: `${url}/`, trusted: true, totalMs: 20_000 })
  assert.equal(await answer.text(), 'there')
})

test('a request without its own limit waits 15 s for the headers', async (t) => {
  const { server, url } = await serve(t, () => undefined)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked = once(server, 'request')
  let failed = false
  const failure = createOutbound()
    .send({ url, trusted: true })
    .catch((thrown: Error) => {
      failed = true
      return thrown
    })
  await asked
  t.mock.timers.tick(14_999)
  await settled()
  assert.equal(failed, false)
  t.mock.timers.tick(1)
  assert.equal(((await failure) as Error).message, `${url} did not answer within 15 s`)
})

test('a URL that cannot be used is refused by what is shown of it, without its path and its secrets', async () => {
  const outbound = createOutbound({ resolve: async () => [{ address: '93.184.215.14', family: 4 }] })
  const refused: [url: string, shown: string, reason: string][] = [
    ['no url', 'the URL', 'it is not a URL'],
    ['ftp://a.test/secret', 'the URL ftp:', 'it is neither http nor https'],
    ['https://ada@a.test/secret', 'the URL a.test', 'it contains a user name or password'],
    ['https://:secret@a.test/', 'the URL a.test', 'it contains a user name or password'],
    ['https://ada:secret@a.test/', 'the URL a.test', 'it contains a user name or password'],
  ]
  for (const [url, shown, reason] of refused) {
    const expected = { code: 'forbidden', message: `${shown} is refused: ${reason}`, details: { reason } }
    await assert.rejects(outbound.check(url), expected)
    await assert.rejects(outbound.send({ url }), expected)
  }
  for (const url of ['http://a.test/', 'https://a.test/']) await outbound.check(url)
})

test('a name that cannot be resolved is named with the code of the resolver, and a retry may help', async () => {
  const failures: [thrown: Error, message: string][] = [
    [Object.assign(new Error('x'), { code: 'EAI_AGAIN' }), 'the name a.test cannot be resolved (EAI_AGAIN)'],
    [new Error('x'), 'the name a.test cannot be resolved (unknown error)'],
  ]
  for (const [thrown, message] of failures) {
    const outbound = createOutbound({ resolve: () => Promise.reject(thrown) })
    await assert.rejects(outbound.send({ url: 'http://a.test/' }), { code: 'timeout', retryable: true, message })
  }
  const empty = createOutbound({ resolve: async () => [] })
  const message = 'the name a.test has no address'
  await assert.rejects(empty.send({ url: 'http://a.test/' }), { code: 'timeout', retryable: true, message })
})

test('one address of several that is internal is enough to refuse a name; a trusted host may have it', async (t) => {
  const { port } = await serve(t, (_request, response) => response.end('hello'))
  const url = `http://two.test:${port}/`
  const outbound = createOutbound({ resolve: async () => [LOOPBACK, { address: '127.0.0.2', family: 4 }] })
  const message = `the URL http://two.test:${port} is refused: two.test does not have a public address; the platform's owner can allow it with --allow-outbound`
  await assert.rejects(outbound.check(url), { code: 'forbidden', message })
  await assert.rejects(outbound.send({ url }), { code: 'forbidden', message })
  assert.equal(await (await outbound.send({ url, trusted: true })).text(), 'hello')
})

test('a process that tries one address only connects to the first that was checked', async (t) => {
  const before = getDefaultAutoSelectFamily()
  t.after(() => setDefaultAutoSelectFamily(before))
  setDefaultAutoSelectFamily(false)
  const { port } = await serve(t, (_request, response) => response.end('hello'))
  const resolve = async () => [LOOPBACK, { address: '127.0.0.99', family: 4 } as const]
  const outbound = createOutbound({ allow: ['127.0.0.0/8'], resolve })
  assert.equal(await (await outbound.send({ url: `http://pinned.test:${port}/` })).text(), 'hello')
})

test('RE-9 a public name without TLS does not lead to an internal address, also where an admin gave the URL', async (t) => {
  const { port } = await serve(t, (_request, response) => response.end('hello'))
  const outbound = createOutbound({ resolve: async () => [LOOPBACK] })
  for (const host of ['agent.example.com', 'localhost.example.com', 'internal.dev']) {
    const request = { url: `http://${host}:${port}/`, trusted: true }
    await assert.rejects(outbound.send(request), { code: 'forbidden', message: /does not have a public address/ })
  }
  for (const host of ['localhost', 'ollama', 'host.docker.internal', 'nas.local', 'gpu.home.arpa', '127.0.0.1']) {
    assert.equal(await (await outbound.send({ url: `http://${host}:${port}/`, trusted: true })).text(), 'hello', host)
  }
  const allowing = createOutbound({ allow: ['agent.example.com'], resolve: async () => [LOOPBACK] })
  const answer = await allowing.send({ url: `http://agent.example.com:${port}/`, trusted: true })
  assert.equal(await answer.text(), 'hello')
})
