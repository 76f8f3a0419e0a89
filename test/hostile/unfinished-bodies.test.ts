/** Attacks with bodies that never end, on a real platform: they cost a bounded part of what was sent, and stop nobody. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const MIB = 1024 * 1024

const residentBytes = ({ pid }: PlatformUnderTest): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

interface UnfinishedBody {
  readonly socket: Socket
  /** What the platform has answered so far. */
  readonly answer: () => string
}

/** Sends the head and a part of the announced body. Resolves when the platform has taken all of it or has answered. */
async function begin(
  platform: PlatformUnderTest,
  { path, token, announced, bytes }: { path: string; token?: string; announced: number; bytes: number },
): Promise<UnfinishedBody> {
  const { hostname, port, host } = new URL(platform.url)
  const socket = connect(Number(port), hostname)
  let answer = ''
  let isFlushed = false
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.on('error', () => undefined)
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
  socket.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${authorization}Content-Length: ${announced}\r\n\r\n`)
  socket.write(Buffer.alloc(bytes, ' '), () => {
    isFlushed = true
  })
  await waitUntil(() => isFlushed || answer !== '' || socket.destroyed, 'the bytes are taken or refused')
  return { socket, answer: () => answer }
}

/** An admin: the limit of bytes a minute does not count it. */
async function createToken(platform: PlatformUnderTest, name: string): Promise<string> {
  const { status, body } = await platform.request('POST', '/tokens', { name, role: 'admin' })
  assert.equal(status, 201, JSON.stringify(body))
  return body.secret ?? body.token
}

/** Connections that the test closes at the latest at its end. */
function keepOpen(t: TestContext): UnfinishedBody[] {
  const open: UnfinishedBody[] = []
  t.after(() => {
    for (const { socket } of open) socket.destroy()
  })
  return open
}

const refusalsOf = (open: readonly UnfinishedBody[], status: number) =>
  open.map(({ answer }) => answer()).filter((answer) => answer.startsWith(`HTTP/1.1 ${status} `))

test('PL-31 RE-9 unfinished bodies of one caller are refused past its limit, and memory grows by a part of them', {
  timeout: 110_000,
}, async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat')
  const token = await createToken(platform, 'attacker')
  await platform.send(id, 'warm')
  const before = residentBytes(platform)
  const open = keepOpen(t)
  const bodies = 60
  const bytes = 7.5 * MIB
  const path = `/workspaces/${id}/a2a`
  for (let count = 0; count < bodies; count++)
    open.push(await begin(platform, { path, token, announced: 8 * MIB, bytes }))
  await waitUntil(() => refusalsOf(open, 429).length >= bodies / 2, 'most bodies are refused')
  const grown = residentBytes(platform) - before
  assert.ok(grown < (bodies * bytes) / 2, `${bodies * bytes} bytes were sent and ${grown} bytes are held`)
  for (const answer of refusalsOf(open, 429)) assert.match(answer, /\r\nRetry-After: \d+\r\n[\s\S]*unfinished bodies/)

  assert.equal((await platform.send(id, 'other callers are served')).status.state, 'TASK_STATE_COMPLETED')
  for (const { socket } of open) socket.destroy()
  const sendAgain = async () => {
    const again = await begin(platform, { path, token, announced: 8 * MIB, bytes: 8 * MIB })
    open.push(again)
    await waitUntil(() => again.answer() !== '', 'an answer')
    return again.answer()
  }
  await waitUntil(async () => !(await sendAgain()).startsWith('HTTP/1.1 429'), 'the limit is free again')
  t.diagnostic(`${Math.round((bodies * bytes) / MIB)} MiB sent, memory grew by ${Math.round(grown / MIB)} MiB`)
})

test('PL-31 RE-9 a stranger at /login may send 4 KB, and only so many unfinished logins at a time', {
  timeout: 110_000,
}, async (t) => {
  const platform = await startPlatformFor(t)
  const open = keepOpen(t)
  const before = residentBytes(platform)
  const bytes = MIB
  for (let count = 0; count < 300; count++)
    open.push(await begin(platform, { path: '/login', announced: bytes + 1, bytes }))
  await waitUntil(() => refusalsOf(open, 413).length === open.length, 'large logins are refused')
  assert.match(open[0]?.answer() ?? '', /larger than 4096 bytes/)
  const grown = residentBytes(platform) - before
  assert.ok(grown < (open.length * bytes) / 2, `${open.length * bytes} bytes were sent and ${grown} bytes are held`)
  for (const { socket } of open.splice(0)) socket.destroy()

  for (let count = 0; count < 300; count++)
    open.push(await begin(platform, { path: '/login', announced: 4000, bytes: 3000 }))
  await waitUntil(() => refusalsOf(open, 429).length > 0, 'one login too many is refused')
  assert.equal((await platform.request('GET', '/workspaces')).status, 200, 'callers with a token are served')
  for (const { socket } of open.splice(0)) socket.destroy()
  const login = () => fetch(`${platform.url}/login`, { method: 'POST', body: '{"code":"x"}' })
  await waitUntil(async () => (await login()).status === 401, 'a login is read again')
})
