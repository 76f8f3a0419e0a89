/**
 * The disk is full: the platform rejects what it cannot store with a clear answer, loses no acknowledged message, and
 * recovers by itself when there is space again. Uses a real small disk where the system allows it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryBytes } from '../harness/live-processes.ts'
import { recordedCgroups, removeCgroups } from '../harness/measures/cgroup.ts'
import { startPlatformProcess } from '../harness/platform-process.ts'
import { waitUntil } from '../harness/wait.ts'
import { findSmallDisk } from './small-disk.ts'

const TOKEN = 'a-token-of-more-than-32-characters-for-a-test'
const TEXT = 'x'.repeat(100_000)
/** Far more than the disk can hold: each message is stored twice, with its reply. */
const SENDS_MAX = 200
const REFUSED_WANTED = 10
const SMALL = 'small'
/** A small message still fits where a large one does not; `SMALL` in its id makes it one. */
const textOf = (messageId: string): string => (messageId.startsWith(SMALL) ? messageId : `${messageId} ${TEXT}`)
const MIB = 1024 * 1024

async function prepare(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'molecule-crash-'))
  const disk = findSmallDisk(dataDir)
  const platform = startPlatformProcess({
    dataDir,
    wrapper: disk.wrapper,
    args: ['--min-free-space', '0'],
    env: { MOLECULE_ADMIN_TOKEN: TOKEN },
  })
  t.after(async () => {
    await platform.stop('SIGKILL')
    await removeCgroups(recordedCgroups(dataDir))
    rmSync(dataDir, { recursive: true, force: true })
  })
  const url = await platform.ready
  const call = async (method: string, path: string, content?: object) => {
    const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
    const response = await fetch(url + path, { method, headers, ...(content && { body: JSON.stringify(content) }) })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came over the wire
    return { status: response.status, body: (await response.json()) as any }
  }
  const { body } = await call('POST', '/workspaces', { name: 'echo', runtime: 'mock', runtime_config: { reply: '%s' } })
  const send = (messageId: string) => {
    const message = { messageId, role: 'ROLE_USER', parts: [{ text: textOf(messageId) }] }
    // Do not wait for the reply: it may not fit on the disk although its message did.
    const params = { message, configuration: { returnImmediately: true } }
    return call('POST', `/workspaces/${body.id}/a2a`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params })
  }
  return { disk, platform, call, send, workspaceId: body.id as string }
}

test('RE-3 RE-1 RE-10 on a full disk a message that cannot be stored gets a clear 503, no acknowledged message is lost, and with space again all are answered without a restart', async (t) => {
  const { disk, platform, call, send, workspaceId } = await prepare(t)
  const acknowledged: string[] = []
  const refused: string[] = []
  const bytesBefore = memoryBytes(platform.pid)
  for (let n = 1; n <= SENDS_MAX && refused.length < REFUSED_WANTED; n++) {
    const answer = await send(`m${n}`)
    if (answer.body.result !== undefined) acknowledged.push(`m${n}`)
    else {
      assert.equal(answer.status, 503, JSON.stringify(answer.body).slice(0, 300))
      assert.equal(answer.body.error.data[0].reason, 'STORE_UNAVAILABLE')
      refused.push(`m${n}`)
    }
  }
  assert.equal(refused.length, REFUSED_WANTED, 'the disk never became full')
  assert.equal((await call('GET', '/health')).body.pid, platform.pid)
  // RE-10: a write proves readiness; polls within a second share it. That write is small, so the last pages are filled first.
  await waitUntil(async () => {
    const messageId = `${SMALL}${acknowledged.length + refused.length}`
    const answer = await send(messageId)
    ;(answer.body.result === undefined ? refused : acknowledged).push(messageId)
    return (await call('GET', '/ready')).status === 503
  }, '/ready says that the disk is full')
  assert.match((await call('GET', '/ready')).body.reason, /the disk is full|the disk reported an error/)
  // Stored data can still be read.
  assert.equal((await call('GET', `/workspaces/${workspaceId}`)).status, 200)
  t.diagnostic(
    `${disk.kind}: ${acknowledged.length} acknowledged, then refused; ${describeMemory(platform.pid, bytesBefore)}`,
  )

  disk.makeRoom(platform.pid)
  for (const messageId of [...refused, ...acknowledged]) {
    await waitUntil(async () => {
      const { body } = await send(messageId)
      await delay(20)
      return body.result?.task?.artifacts?.at(-1)?.parts[0]?.text === textOf(messageId)
    }, `${messageId} is answered`)
  }
  await waitUntil(async () => (await call('GET', '/ready')).status === 200, '/ready after there is space again')
  const { running, queue_depth: waiting } = (await call('GET', `/workspaces/${workspaceId}`)).body
  assert.deepEqual([running, waiting], [0, 0])
  assert.equal((await call('GET', '/health')).body.pid, platform.pid)
  assert.equal(await platform.stop(), 0, platform.output())
})

function describeMemory(pid: number, before: number): string {
  const grown = memoryBytes(pid) - before
  assert.ok(grown < 200 * MIB, `memory grew by ${grown} bytes`)
  return `memory grew by ${(grown / MIB).toFixed(0)} MiB`
}
