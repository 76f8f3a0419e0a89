/** Which redirects are followed and with what, which URLs are read, and the limits of a request without its own. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { getDefaultAutoSelectFamily, setDefaultAutoSelectFamily } from 'node:net'
import { test } from 'node:test'
import { setImmediate as settle } from 'node:timers/promises'
import { serve } from '../../test/harness/loopback-server.ts'
import { createOutbound } from './outbound.ts'

const LOOPBACK = { address: '127.0.0.1', family: 4 } as const

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
  await settle()
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
