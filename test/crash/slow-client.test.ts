/**
 * Slow clients: half a request that never ends, an answer or a stream that is never read. They cost the platform
 * bounded memory and do not affect other clients. src/doors/http/http.test.ts tests the timeout of such a request;
 * here many slow clients meet a real platform.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryBytes } from '../harness/live-processes.ts'
import { type PlatformUnderTest, replyText } from '../harness/platform.ts'
import { createCrashHarness } from './crash-harness.ts'

const MIB = 1024 * 1024
const HALF_SENDERS = 100
const NEVER_READERS = 20
/** Requests on one connection, whose answers are never read. */
const PIPELINED = 300
const REPLY_BYTES = MIB
/** How long the slow clients stay. */
const WHILE_MS = 1000

interface SlowClientContext {
  readonly platform: PlatformUnderTest
  /** Its agent answers with a mebibyte. */
  readonly workspaceId: string
  /** A connection that sends this text, then nothing more, and never reads. */
  open(text: string): Promise<Socket>
  end(): Promise<void>
}

async function prepare(t: TestContext): Promise<SlowClientContext> {
  const harness = await createCrashHarness(t)
  const platform = await harness.start()
  const workspaceId = await platform.exec(`cat >/dev/null; head -c ${REPLY_BYTES} /dev/zero | tr '\\0' x`)
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  return {
    platform,
    workspaceId,
    async open(text) {
      const socket = connect(Number(new URL(platform.url).port), '127.0.0.1')
      sockets.push(socket)
      // The platform may close the connection.
      socket.on('error', () => undefined).pause()
      await once(socket, 'connect')
      socket.write(text)
      return socket
    },
    async end() {
      for (const socket of sockets) socket.destroy()
      await harness.end()
    },
  }
}

function request({ platform, workspaceId }: SlowClientContext, body: string, length = Buffer.byteLength(body)): string {
  const head = [
    `POST /workspaces/${workspaceId}/a2a HTTP/1.1`,
    `Host: ${new URL(platform.url).host}`,
    `Authorization: Bearer ${platform.token}`,
    'Content-Type: application/json',
    'A2A-Version: 1.0',
    `Content-Length: ${length}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const rpc = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

/** Checks that other clients are served meanwhile and that memory grows by less than the limit. */
async function assertServed(
  t: TestContext,
  { platform }: SlowClientContext,
  limits: { bytesBefore: number; bytesMax: number },
) {
  const echo = await platform.exec('cat')
  for (let n = 1; n <= 5; n++) assert.equal(replyText(await platform.send(echo, `hello ${n}`)), `hello ${n}`)
  await delay(WHILE_MS)
  assert.equal(replyText(await platform.send(echo, 'still there')), 'still there')
  assert.equal((await platform.request('GET', '/ready')).status, 200)
  const grown = memoryBytes(platform.pid) - limits.bytesBefore
  t.diagnostic(`memory grew by ${(grown / MIB).toFixed(0)} MiB`)
  assert.ok(grown < limits.bytesMax, `memory grew by ${grown} bytes`)
}

test('RE-3 when a hundred clients send half a request, others are served, and the platform holds only what was sent', async (t) => {
  const context = await prepare(t)
  const bytesBefore = memoryBytes(context.platform.pid)
  const half = 'x'.repeat(MIB / 2)
  await Promise.all(Array.from({ length: HALF_SENDERS }, () => context.open(request(context, half, 2 * half.length))))
  await assertServed(t, context, { bytesBefore, bytesMax: 3 * HALF_SENDERS * half.length })
  await context.end()
})

test('RE-3 when a client requests a large answer many times and never reads, others are served, and the answers do not pile up', async (t) => {
  const context = await prepare(t)
  const task = await context.platform.send(context.workspaceId, 'go')
  assert.equal(replyText(task)?.length, REPLY_BYTES)
  const bytesBefore = memoryBytes(context.platform.pid)
  const socket = await context.open('')
  const getTask = request(context, rpc('GetTask', { id: task.id }))
  for (let n = 0; n < PIPELINED; n++) socket.write(getTask)
  await assertServed(t, context, { bytesBefore, bytesMax: (PIPELINED * REPLY_BYTES) / 2 })
  await context.end()
})

test('RE-3 IN-10 when clients open streams of a large answer and never read, others are served, and each stream costs bounded memory', async (t) => {
  const context = await prepare(t)
  const bytesBefore = memoryBytes(context.platform.pid)
  const streams = Array.from({ length: NEVER_READERS }, (_, n) => {
    const message = { messageId: `stream-${n}`, contextId: `${n}`, role: 'ROLE_USER', parts: [{ text: 'go' }] }
    return context.open(request(context, rpc('SendStreamingMessage', { message })))
  })
  await Promise.all(streams)
  await assertServed(t, context, { bytesBefore, bytesMax: 8 * NEVER_READERS * REPLY_BYTES })
  // Their messages were admitted and answered although no client read the stream.
  for (let n = 0; n < NEVER_READERS; n++) {
    const again = { messageId: `stream-${n}`, contextId: `${n}` }
    assert.equal(replyText(await context.platform.send(context.workspaceId, 'go', again))?.length, REPLY_BYTES)
  }
  await context.end()
})
