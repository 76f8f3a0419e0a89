import assert from 'node:assert/strict'
import { createServer, request as sendRequest } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { fakeRequest } from '../../../../test/fakes/http-exchange.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { createFakePlatform, secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import { bearerOptions, connectSocket, type SocketClient } from '../../../../test/harness/clients/socket-client.ts'
import { waitUntil, within } from '../../../../test/harness/wait.ts'
import { listen } from '../../listen.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import { createAddresses } from '../server/addresses.ts'
import { createHttpAuth } from '../server/auth.ts'
import { createRateLimit } from '../server/rate-limit.ts'
import { createWrongTokenLimit } from '../server/wrong-token-limit.ts'
import { createSockets } from './sockets.ts'

const ADDRESSES = createAddresses({ host: '127.0.0.1' })

/** Everything here happens at once; a test that waits for longer has failed. */
const WAIT_MS = 10_000
const soon = (condition: () => boolean | Promise<boolean>) => waitUntil(condition, String(condition), WAIT_MS)
const end = <T>(promise: Promise<T>): Promise<T> => within(promise, 'the end', WAIT_MS)

const LIMITS = { keepAliveMs: 20_000, unsentBytesMax: 1_000_000, unsentMs: 30_000 }

/** Sockets on a server of loopback, whose clock the test moves. */
async function openSockets(t: TestContext, change: (given: WorkspaceLogs) => Partial<WorkspaceLogs> = () => ({})) {
  const { clock, timers } = countTimers(manualClock())
  const fake = createFakeActivityLogs([WORKSPACE_ID])
  const platform = createFakePlatform()
  const { tokens, workspaces, store, log } = platform
  const counted = { heads: 0, watchers: 0, tokens: 0 }
  const logs: WorkspaceLogs = {
    ...fake.logs,
    heads() {
      counted.heads++
      return fake.logs.heads()
    },
    onChange(callback) {
      counted.watchers++
      const stop = fake.logs.onChange(callback)
      return () => {
        counted.watchers--
        stop()
      }
    },
    ...change(fake.logs),
  }
  const sockets = createSockets({
    tokens: {
      onRevoked(identity, callback) {
        counted.tokens++
        const stop = tokens.onRevoked(identity, callback)
        return () => {
          counted.tokens--
          stop()
        }
      },
    },
    workspaces,
    store,
    readCards: async () => new Map(),
    log,
    logs,
    clock,
    limits: LIMITS,
    addresses: ADDRESSES,
    auth: createHttpAuth({
      tokens,
      port: 1,
      addresses: ADDRESSES,
      rateLimit: createRateLimit(clock),
      byteLimit: createRateLimit(clock),
      wrongTokenLimit: createWrongTokenLimit(clock),
    }),
  })
  const connections = new Set<Socket>()
  const server = createServer().on('upgrade', sockets.upgrade)
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
  })
  await listen(server, { host: '127.0.0.1', port: 0, flag: '--port' })
  t.after(() => {
    for (const socket of connections) socket.destroy()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connect = async (options: object = bearerOptions(secretOf('admin'))) => {
    const client = await connectSocket(url, options)
    t.after(() => client.socket.terminate())
    return client
  }
  const follow = async () => {
    const client = await connect()
    client.send({ subscribe: { [WORKSPACE_ID]: 0 } })
    await soon(() => client.messages.length === 1)
    return client
  }
  return { clock, timers, logs: fake, platform, counted, sockets, url, connections, connect, follow }
}

/** Lets the callbacks of all promises and of the next events run. */
const rest = async () => {
  for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('PL-7 the numbers of all logs are compared every 5 s while a socket is open', async (t) => {
  const { clock, counted, follow } = await openSockets(t)
  clock.advance(5000)
  await rest()
  assert.equal(counted.heads, 0, 'no socket is open')
  await follow()
  clock.advance(4999)
  await rest()
  assert.equal(counted.heads, 0)
  clock.advance(1)
  await rest()
  assert.equal(counted.heads, 1)
  clock.advance(5000)
  await rest()
  assert.equal(counted.heads, 2)
})

test('PL-7 hints that name no log are one comparison after 50 ms, and the next is after 5 s again', async (t) => {
  const { clock, counted, follow, logs } = await openSockets(t)
  const client = await follow()
  for (let row = 0; row < 3; row++) logs.addElsewhere(WORKSPACE_ID)
  clock.advance(49)
  await rest()
  assert.equal(counted.heads, 0)
  clock.advance(1)
  await soon(() => client.seqs(WORKSPACE_ID).length === 3)
  assert.equal(counted.heads, 1)
  clock.advance(4999)
  await rest()
  assert.equal(counted.heads, 1)
  clock.advance(1)
  await rest()
  assert.equal(counted.heads, 2)
})

for (const begin of ['a hint', 'the time'])
  test(`PL-7 a hint during a comparison that ${begin} began causes one more soon after it`, async (t) => {
    let answer: () => void = () => undefined
    let heads = 0
    const { clock, follow, logs } = await openSockets(t, (activity) => ({
      async heads() {
        heads++
        const found = await activity.heads()
        await new Promise<void>((resolve) => {
          answer = resolve
        })
        return found
      },
    }))
    await follow()
    const pass = async (ms: number) => {
      clock.advance(ms)
      await rest()
      return heads
    }
    if (begin === 'a hint') logs.addElsewhere(WORKSPACE_ID)
    assert.equal(await pass(begin === 'a hint' ? 50 : 5000), 1)
    logs.addElsewhere(WORKSPACE_ID)
    assert.equal(await pass(1000), 1, 'one comparison at a time')
    answer()
    await rest()
    assert.deepEqual([await pass(49), await pass(1)], [1, 2])
    answer()
    await rest()
    assert.equal(await pass(4999), 2)
  })

test('RE-3 a comparison that fails is logged, and the next one runs', async (t) => {
  let heads = 0
  const { clock, follow, platform } = await openSockets(t, () => ({
    async heads() {
      heads++
      throw new Error('the store is gone')
    },
  }))
  await follow()
  for (const round of [1, 2]) {
    clock.advance(5000)
    await rest()
    assert.equal(heads, round)
  }
  assert.equal(platform.logged.filter(({ msg }) => msg === 'logs could not be compared').length, 2)
})

test('PL-7 a hint that names a log reaches its readers at once, without a comparison', async (t) => {
  const { counted, follow, logs } = await openSockets(t)
  const [first, second] = [await follow(), await follow()]
  logs.add(WORKSPACE_ID)
  await soon(() => first.seqs(WORKSPACE_ID).length === 1 && second.seqs(WORKSPACE_ID).length === 1)
  assert.equal(counted.heads, 0)
})

test('PL-7 a change is told to a client of _platform soon after a hint, not only at the next poll', async (t) => {
  const { clock, connect, logs, platform } = await openSockets(t)
  const client = await connect()
  client.send({ subscribe: { _platform: null } })
  await soon(() => client.messages.length === 2)
  await rest()
  clock.advance(100)
  await rest()
  await platform.workspaces.create({ name: 'new' })
  logs.add(WORKSPACE_ID)
  await soon(() => client.messages.some(({ type }) => type === 'created'))
})

test('PL-7 a client that answers pings stays, and one that does not is disconnected at the next ping', async (t) => {
  const { clock, connect } = await openSockets(t)
  const alive = await connect()
  const dead = await connect({ ...bearerOptions(secretOf('admin')), autoPong: false })
  let pings = 0
  alive.socket.on('ping', () => pings++)
  let deadPings = 0
  dead.socket.on('ping', () => deadPings++)
  clock.advance(19_999)
  await rest()
  assert.equal(pings, 0)
  clock.advance(1)
  await soon(() => pings === 1 && deadPings === 1)
  // The answer to a ping arrives before a later message of the same client is answered.
  alive.send('{')
  await soon(() => alive.messages.length === 1)
  clock.advance(20_000)
  assert.equal(await end(dead.closed), 1006)
  await soon(() => pings === 2)
  assert.equal(alive.socket.readyState, alive.socket.OPEN)
})

test('RE-3 a client that has gone leaves no timer, no watch and no place', async (t) => {
  const { timers, connect, platform, counted } = await openSockets(t)
  const before = timers()
  const client = await connect()
  assert.equal(timers(), before + 1)
  assert.equal(counted.tokens, 1)
  client.socket.close()
  await end(client.closed)
  await soon(() => timers() === before && counted.tokens === 0)
  const one = await connect()
  await platform.tokens.revoke('admin')
  assert.equal(await end(one.closed), 4401)
})

test('PL-12 a client that does not answer the close of a revoked token is disconnected after a second', async (t) => {
  const { clock, connect, platform, connections } = await openSockets(t)
  const client = await connect()
  client.socket.pause()
  await platform.tokens.revoke('admin')
  await rest()
  clock.advance(999)
  await rest()
  assert.equal(connections.size, 1)
  clock.advance(1)
  await soon(() => connections.size === 0)
})

test('RE-5 closing closes every socket with 1001, a silent one after a second, and leaves no timer and no listener', async (t) => {
  const { clock, timers, connect, sockets, counted, connections } = await openSockets(t)
  const answering = await connect()
  const silent = await connect()
  silent.socket.pause()
  const closing = sockets.close().then(() => 'closed')
  assert.equal(await end(answering.closed), 1001)
  await soon(() => connections.size === 1)
  clock.advance(999)
  const state = () => Promise.race([closing, rest().then(() => 'waits')])
  assert.equal(await state(), 'waits')
  clock.advance(1)
  assert.equal(await end(closing), 'closed')
  assert.deepEqual([timers(), counted.watchers], [0, 0])
})

test('RE-5 closing without sockets needs no time, and a later upgrade is dropped', async (t) => {
  const { sockets, connect, timers } = await openSockets(t)
  await end(sockets.close())
  assert.equal(timers(), 0)
  await assert.rejects(connect(), /socket hang up|ECONNRESET/)
})

test('PL-7 a refused upgrade is an HTTP answer with its reason, and the connection ends', async (t) => {
  const { url, platform, connections } = await openSockets(t)
  const upgrade = (path: string, headers: Readonly<Record<string, string>>) =>
    new Promise<unknown[]>((resolve, reject) => {
      const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
      const options = { agent: false, headers: { connection: 'Upgrade', upgrade: 'websocket', ...key, ...headers } }
      const outgoing = sendRequest(url + path, options, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        incoming.on('end', () => {
          const { code, message } = JSON.parse(text).error
          resolve([incoming.statusCode, incoming.headers.connection, code, message])
        })
      })
      outgoing.on('upgrade', (_response, socket) => {
        socket.destroy()
        resolve(['upgraded'])
      })
      outgoing.on('error', reject)
      outgoing.end()
    })
  const authorization = `Bearer ${secretOf('admin')}`
  for (const path of ['/ws', '/ws/', '/ws?x=1', '/ws/?x=/y'])
    assert.deepEqual(await upgrade(path, { authorization }), ['upgraded'], path)
  const elsewhere = [404, 'close', 'not_found', 'there is no WebSocket here; it is at /ws']
  for (const path of ['/', '/wsx', '/x/ws', '/x?/ws'])
    assert.deepEqual(await upgrade(path, { authorization }), elsewhere)
  const host =
    '"evil.test" is not a name of this platform; use localhost or its address, or start it with --public-url https://evil.test'
  assert.deepEqual(await upgrade('/ws', { authorization, host: 'evil.test' }), [403, 'close', 'forbidden', host])
  assert.deepEqual((await upgrade('/ws', {})).slice(0, 3), [401, 'close', 'unauthenticated'])
  const cookie = 'molecule_session_1=admin-secret'
  assert.deepEqual((await upgrade('/ws', { cookie })).slice(0, 3), [403, 'close', 'forbidden'])
  const caller = await upgrade('/ws', { authorization: `Bearer ${secretOf('caller')}` })
  assert.deepEqual(caller.slice(0, 3), [403, 'close', 'forbidden'])
  const line = platform.logged.at(-1)
  assert.deepEqual([line?.['code'], line?.['path'], line?.['msg']], ['forbidden', '/ws', 'request refused'])
  await soon(() => connections.size === 0)
})

test('PL-9 a token has 32 sockets; the refusal says so and when to try again', async (t) => {
  const { connect, platform } = await openSockets(t)
  const clients: SocketClient[] = []
  for (let count = 0; count < 32; count++) clients.push(await connect())
  await assert.rejects(connect(), /Unexpected server response: 429/)
  const line = platform.logged.at(-1)
  assert.deepEqual([line?.['code'], line?.['reason']], ['too_many_requests', 'this token has 32 sockets open'])
  await connect(bearerOptions(secretOf('viewer')))
  clients[0]?.socket.terminate()
  await clients[0]?.closed
  await soon(() =>
    connect().then(
      () => true,
      () => false,
    ),
  )
})

test('RE-5 a comparison that ends after the sockets have closed starts no other', async (t) => {
  const comparison = Promise.withResolvers<void>()
  const { sockets, connect, clock, timers } = await openSockets(t, ({ heads }) => ({
    async heads() {
      await comparison.promise
      return await heads()
    },
  }))
  await connect()
  clock.advance(5000)
  await end(sockets.close())
  comparison.resolve()
  await rest()
  assert.equal(timers(), 0)
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
