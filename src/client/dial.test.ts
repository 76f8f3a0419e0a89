import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as settle } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { within } from '../../test/harness/wait.ts'
import type { MoleculeError } from '../errors.ts'
import { type DialOptions, dial } from './dial.ts'

const LATE_MS = 120_000
const WAIT_MS = 10_000

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function serve(t: TestContext, answer: RequestListener): Promise<DialOptions> {
  return to(`http://127.0.0.1:${await listen(t, createHttpServer(answer))}/`)
}

const noLookup: LookupFunction = () => assert.fail('the host is an address')
const to = (url: string): DialOptions => ({
  url: new URL(url),
  method: 'GET',
  headers: {},
  body: undefined,
  lookup: noLookup,
  headersMs: LATE_MS,
  bytesMax: 1000,
})
const never = () => new AbortController().signal
const timersOf = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

test('an answer is read with its status and headers, and a body is sent with its length in bytes', async (t) => {
  const asked: unknown[] = []
  const options = await serve(t, async ({ method, headers }, response) => {
    asked.push(method, headers['content-length'], headers['transfer-encoding'], headers['x-key'])
    response.writeHead(418, { 'X-Answer': 'yes' }).end('ü')
  })
  const before = timersOf()
  const request = { ...options, method: 'POST', body: 'ü€', headers: { 'X-Key': 'k' } }
  const answer = await within(dial(request, never()), 'an answer', WAIT_MS)
  assert.deepEqual([answer.status, answer.headers['x-answer'], await answer.text()], [418, 'yes', 'ü'])
  assert.deepEqual(asked, ['POST', '5', undefined, 'k'])
  assert.equal(timersOf(), before, 'no timer is left')
})

test('a closed port is named by its code, and a failure leaves no timer that holds the process', async () => {
  const before = timersOf()
  await assert.rejects(within(dial(to('http://127.0.0.1:1/'), never()), 'a failure', WAIT_MS), {
    code: 'timeout',
    retryable: true,
    message: 'http://127.0.0.1:1 cannot be reached (ECONNREFUSED)',
  })
  assert.equal(timersOf(), before)
})

test('a request that is cancelled before it starts opens no connection', async () => {
  let lookups = 0
  const lookup: LookupFunction = (_name, _options, callback) => {
    lookups += 1
    callback(null, [{ address: '127.0.0.1', family: 4 }])
  }
  await assert.rejects(dial({ ...to('http://later.test:1/'), lookup }, AbortSignal.abort()), { code: 'canceled' })
  await settle()
  assert.equal(lookups, 0)
})

test('a server that accepts no connection fails after 10 s, also one that never ends the handshake of TLS', async (t) => {
  const server = createServer()
  const port = await listen(t, server)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const accepted = once(server, 'connection')
  let failed = false
  const failure = dial(to(`https://127.0.0.1:${port}/`), never()).catch((thrown: unknown) => {
    failed = true
    return thrown as Error & { code: string; retryable: boolean }
  })
  await accepted
  t.mock.timers.tick(9_999)
  await settle()
  assert.equal(failed, false)
  t.mock.timers.tick(1)
  t.mock.timers.tick(LATE_MS)
  const error = (await failure) as Error & { code: string; retryable: boolean }
  const message = `https://127.0.0.1:${port} did not accept a connection within 10 s`
  assert.deepEqual([error.code, error.retryable, error.message], ['timeout', true, message])
})

test('a connected server may take all its time for the headers, and then fails', async (t) => {
  const server = createHttpServer()
  const port = await listen(t, server)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked = once(server, 'request')
  let failed = false
  const failure = dial(to(`http://127.0.0.1:${port}/`), never()).catch((thrown: unknown) => {
    failed = true
    return thrown as Error & { code: string; retryable: boolean }
  })
  await asked
  t.mock.timers.tick(LATE_MS - 1)
  await settle()
  assert.equal(failed, false)
  t.mock.timers.tick(1)
  const error = (await failure) as Error & { code: string; retryable: boolean }
  const message = `http://127.0.0.1:${port} did not answer within 120 s`
  assert.deepEqual([error.code, error.retryable, error.message], ['timeout', true, message])
})

test('once the headers are there, the body may take as long as it needs', async (t) => {
  const parts = Promise.withResolvers<void>()
  const options = await serve(t, (_request, response) => {
    response.write('slow')
    parts.promise.then(() => response.end('ly'), assert.fail)
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const answer = await dial(options, never())
  t.mock.timers.tick(10 * LATE_MS)
  parts.resolve()
  assert.equal(await answer.text(), 'slowly')
})

test('an answer may have as many bytes as allowed; one more is an error with the limit', async (t) => {
  let bytes = 1000
  const options = await serve(t, (_request, response) => void response.end('x'.repeat(bytes)))
  assert.equal((await (await dial(options, never())).text()).length, 1000)
  bytes = 1001
  await assert.rejects((await dial(options, never())).text(), {
    code: 'too_large',
    retryable: false,
    details: { limitBytes: 1000 },
    message: 'the answer is larger than 1000 bytes',
  })
})

test('an abort while the body is read says if it was cancelled or too slow', async (t) => {
  const options = await serve(t, (_request, response) => void response.write('begun'))
  const stop = new AbortController()
  const answer = await dial(options, stop.signal)
  const text = answer.text()
  stop.abort()
  await assert.rejects(text, { code: 'canceled', retryable: false, message: 'the request was cancelled' })
  const limit = new AbortController()
  const slow = (await dial(options, limit.signal)).text()
  limit.abort(new DOMException('late', 'TimeoutError'))
  const message = `${options.url.origin} did not answer in time`
  await assert.rejects(slow, { code: 'timeout', retryable: true, message })
})

test('a body that is discarded, or not read to its end, closes its connection', async (t) => {
  const closed: Promise<unknown>[] = []
  const options = await serve(t, (_request, response) => {
    closed.push(once(response, 'close'))
    response.write('endless')
  })
  const discarded = await dial(options, never())
  discarded.discard()
  await closed[0]
  for await (const chunk of (await dial(options, never())).chunks()) {
    assert.equal(chunk.toString(), 'endless')
    break
  }
  await closed[1]
})

/** A key and its own certificate for 127.0.0.1, from 2020 to 2120, for this test alone. */
const KEY = {
  kty: 'EC',
  crv: 'P-256',
  d: 'qagx7ypg2MfwjlaLCy8PV050k34a6svxFf147hq8yk8',
  x: 'YQcViCTt2Up1oXms9TkhT_lvqe8WD486GSKFGsmRwuI',
  y: 'oZATp1axWNeiLffRN2uxUJyFl6GZWELMkc-1yntmcOk',
}
const CERTIFICATE = [
  'MIIBSjCB8qADAgECAgEBMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXQwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBa',
  'MAwxCjAIBgNVBAMMAXQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARhBxWIJO3ZSnWheaz1OSFP+W+p7xYPjzoZIoUayZHC4qGQ',
  'E6dWsVjXoi330TdrsVCchZehmVhCzJHPtcp7ZnDpo0MwQTAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwHQYDVR0O',
  'BBYEFEGy9dR+vr+wxuIm3PZNt3gjm2ElMAoGCCqGSM49BAMCA0cAMEQCIG0PGEwbxR/DWzhkdHU3WmFfGWgM5dj9aVmfGgMnWdBR',
  'AiB+IN6h7J7Zb5pcO2YokTB6nO7b2ESm85tEjANhoj7W3g==',
].join('\n')

test('over https too, the limit for a connection ends with the handshake, and the answer has its own', async (t) => {
  const cert = `-----BEGIN CERTIFICATE-----\n${CERTIFICATE}\n-----END CERTIFICATE-----\n`
  const key = createPrivateKey({ key: KEY, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' })
  const before = getCACertificates('default')
  setDefaultCACertificates([cert])
  const server = createTlsServer({ cert, key })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    setDefaultCACertificates(before)
    server.closeAllConnections()
    server.close()
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const request = { url, method: 'GET', headers: {}, body: undefined, headersMs: 60_000, bytesMax: 1000 }
  const asked = once(server, 'request')
  let failed = false
  const failure = dial({ ...request, lookup: () => assert.fail() }, new AbortController().signal).catch(
    (thrown: MoleculeError) => {
      failed = true
      return thrown
    },
  )
  await asked
  t.mock.timers.tick(59_999)
  await new Promise(setImmediate)
  assert.equal(failed, false)
  t.mock.timers.tick(1)
  const { message } = (await failure) as MoleculeError
  assert.equal(message, `${url.origin} did not answer within 60 s`)
})
