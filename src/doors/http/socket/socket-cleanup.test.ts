import assert from 'node:assert/strict'
import { createServer, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { fakeRequest } from '../../../../test/fakes/http-exchange.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import { bearerOptions, connectSocket } from '../../../../test/harness/clients/socket-client.ts'
import { waitUntil, within } from '../../../../test/harness/wait.ts'
import { listen } from '../../listen.ts'
import { createAddresses } from '../server/addresses.ts'
import { createHttpAuth } from '../server/auth.ts'
import { createRateLimit } from '../server/rate-limit.ts'
import { createWrongTokenLimit } from '../server/wrong-token-limit.ts'
import { createSockets } from './sockets.ts'

const ADDRESSES = createAddresses({ host: '127.0.0.1' })

const WAIT_MS = 10_000
const soon = (condition: () => boolean) => waitUntil(condition, String(condition), WAIT_MS)
const rest = async () => {
  for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Sockets whose token watches are counted, and whose comparison the test ends. */
async function openSockets(t: TestContext) {
  const { clock, timers } = countTimers(manualClock())
  const { tokens, workspaces, needsYou, log } = createFakePlatform()
  const { logs, addElsewhere } = createFakeActivityLogs([WORKSPACE_ID])
  const comparison = Promise.withResolvers<void>()
  const counted = { watches: 0, heads: 0 }
  const sockets = createSockets({
    workspaces,
    needsYou,
    log,
    clock,
    addresses: ADDRESSES,
    limits: { keepAliveMs: 20_000, unsentBytesMax: 1_000_000, unsentMs: 30_000 },
    tokens: {
      onRevoked(identity, callback) {
        counted.watches++
        const stop = tokens.onRevoked(identity, callback)
        return () => {
          counted.watches--
          stop()
        }
      },
    },
    logs: {
      ...logs,
      async heads() {
        counted.heads++
        await comparison.promise
        return logs.heads()
      },
    },
    auth: createHttpAuth({
      tokens,
      port: 1,
      addresses: ADDRESSES,
      rateLimit: createRateLimit(clock),
      byteLimit: createRateLimit(clock),
      wrongTokenLimit: createWrongTokenLimit(clock),
    }),
  })
  const server = createServer().on('upgrade', sockets.upgrade)
  await listen(server, { host: '127.0.0.1', port: 0, flag: '--port' })
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connect = async () => {
    const client = await connectSocket(url, bearerOptions(secretOf('admin')))
    t.after(() => client.socket.terminate())
    return client
  }
  return { sockets, connect, clock, timers, url, counted, addElsewhere, endComparison: comparison.resolve }
}

test('RE-3 the token of a socket is watched until the socket closes', async (t) => {
  const { connect, counted } = await openSockets(t)
  const client = await connect()
  await soon(() => counted.watches === 1)
  client.socket.close()
  await soon(() => counted.watches === 0)
})

test('RE-5 a comparison that ends after the sockets have closed starts no other', async (t) => {
  const { sockets, connect, clock, timers, endComparison } = await openSockets(t)
  await connect()
  clock.advance(5000)
  await within(sockets.close(), 'the sockets close', WAIT_MS)
  endComparison()
  await rest()
  assert.equal(timers(), 0)
})

test('PL-7 after a comparison the next hint is again answered soon', async (t) => {
  const { connect, clock, counted, addElsewhere, endComparison } = await openSockets(t)
  endComparison()
  await connect()
  for (const [ms, comparisons] of [
    [5000, 1],
    [49, 1],
    [1, 2],
  ] as const) {
    clock.advance(ms)
    await rest()
    assert.equal(counted.heads, comparisons)
    if (ms === 5000) addElsewhere(WORKSPACE_ID)
  }
})

test('RE-3 a connection that breaks before its upgrade is dropped', async (t) => {
  const { sockets } = await openSockets(t)
  const raw = new PassThrough()
  const request = fakeRequest({ method: 'GET', url: '/ws', headers: { host: 'localhost', upgrade: 'websocket' } })
  sockets.upgrade(request, raw, Buffer.alloc(0))
  raw.emit('error', new Error('reset'))
  assert.ok(raw.destroyed)
  await rest()
})

test('PL-12 PL-9 a page of another origin opens no socket, and a token with too many is told when to retry', async (t) => {
  const { connect, url } = await openSockets(t)
  const refusal = (headers: Readonly<Record<string, string>>) =>
    new Promise((resolve, reject) => {
      const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
      const authorization = `Bearer ${secretOf('admin')}`
      const all = { connection: 'Upgrade', upgrade: 'websocket', authorization, ...key, ...headers }
      const outgoing = sendRequest(`${url}/ws`, { agent: false, headers: all }, (incoming) => {
        incoming.resume()
        resolve([incoming.statusCode, incoming.headers['retry-after']])
      })
      outgoing.on('upgrade', (_response, socket) => {
        socket.destroy()
        resolve('upgraded')
      })
      outgoing.on('error', reject)
      outgoing.end()
    })
  assert.deepEqual(await refusal({ origin: 'https://evil.test' }), [403, undefined])
  assert.deepEqual(await refusal({ origin: url }), 'upgraded')
  for (let count = 0; count < 32; count++) await connect()
  assert.deepEqual(await refusal({}), [429, '10'])
})
