import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { serve } from '../../test/harness/loopback-server.ts'
import { MoleculeError } from '../errors.ts'
import { createAllowList, nonPublicReason } from './ip-addresses.ts'
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

test('internal addresses differ from public ones in every spelling', () => {
  const inside = [
    ...['0.0.0.0', '127.0.0.1', '127.8.9.1', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1'],
    ...['169.254.169.254', '168.63.129.16', '192.0.0.192', '224.0.0.1', '239.1.1.1', '255.255.255.255', '240.0.0.1'],
    ...['192.0.2.1', '198.18.0.1', '203.0.113.7', '0.1.2.3', '::', '::1', '0:0:0:0:0:0:0:1', '::127.0.0.1'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:FFFF:10.0.0.1', '::ffff:169.254.169.254', '::ffff:0:7f00:1'],
    ...['fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '2001:db8::1', '64:ff9b::a00:1'],
    ...['2002:7f00:1::', '2001::1', '64:ff9b:1::1', '100::1', '4000::1', 'not an address', ''],
  ]
  for (const address of inside) assert.ok(nonPublicReason(address) !== undefined, address)
  for (const address of ['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
    assert.equal(nonPublicReason(address), undefined, address)
  }
})

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

test('a POST is not turned into a GET; the caller gets the redirect itself', async (t) => {
  const { url } = await serve(t, (_request, response) => response.writeHead(302, { location: '/' }).end())
  const answer = await createOutbound().send({ url, method: 'POST', body: 'x', trusted: true })
  assert.equal(answer.status, 302)
  answer.discard()
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
