/** Streams of the real platform that the reader leaves, or that end because the platform is killed. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type OpenStream, openStream, type StreamEvent, sendParams } from '../harness/open-door.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

/** Writes a line every 0.1 s for two seconds. */
const LINES = 'for n in $(seq 1 20); do echo line $n; sleep 0.1; done'

function open(
  { platform, workspaceId }: { platform: PlatformUnderTest; workspaceId: string },
  call: object,
  lastEventId = '',
): Promise<OpenStream> {
  return openStream(`${platform.url}/workspaces/${workspaceId}/a2a`, {
    token: platform.token,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...call }),
    ...(lastEventId !== '' && { headers: { 'last-event-id': lastEventId } }),
  })
}

const send = (text: string) => ({ method: 'SendStreamingMessage', params: sendParams(text) })
const subscribe = (id: string) => ({ method: 'SubscribeToTask', params: { id } })
const taskIdOf = (events: readonly StreamEvent[]): string => events[0]?.data.result.task.id

/** Every event after the first snapshot, as a client receives them that subscribes after the task has ended. */
async function wholeLog(at: Parameters<typeof open>[0], seen: readonly StreamEvent[]) {
  const stream = await open(at, subscribe(taskIdOf(seen)), seen[0]?.id)
  assert.equal(await stream.ended, 'ended')
  return stream.events
}

test('PL-5 a stream that is cut and resumed with Last-Event-ID shows every event once, in order', async () => {
  const platform = await startPlatform()
  try {
    const at = { platform, workspaceId: await platform.exec(LINES) }
    const seen: StreamEvent[] = []
    for (let cuts = 0; ; cuts++) {
      const call = seen.length === 0 ? send('go') : subscribe(taskIdOf(seen))
      const stream = await open(at, call, seen.at(-1)?.id)
      const isLast = () => stream.events.at(-1)?.data.result.statusUpdate?.status.state === 'TASK_STATE_COMPLETED'
      await waitUntil(() => stream.events.length >= 3 || isLast())
      stream.leave()
      seen.push(...stream.events)
      if (!isLast()) continue
      assert.ok(cuts >= 2, `${cuts} cuts`)
      break
    }
    assert.deepEqual(seen.slice(1), await wholeLog(at, seen))
    assert.equal(new Set(seen.map((event) => event.id)).size, seen.length)
    assert.equal(seen.at(-1)?.data.result.statusUpdate.status.state, 'TASK_STATE_COMPLETED')
  } finally {
    await platform.dispose()
  }
})

test('PL-5 RE-1 a stream cut by kill -9 continues after the restart, every event once, in order', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  let platform = await startPlatform({ dataDir })
  try {
    const at = { platform, workspaceId: await platform.exec(LINES) }
    const before = await open(at, send('go'))
    await waitUntil(() => before.events.length >= 4)
    await platform.stop('SIGKILL')
    assert.equal(await before.ended, 'cut')
    platform = await startPlatform({ dataDir })
    const again = { ...at, platform }
    const after = await open(again, subscribe(taskIdOf(before.events)), before.events.at(-1)?.id)
    assert.equal(await after.ended, 'ended')
    const seen = [...before.events, ...after.events]
    assert.ok(after.events.length > 4, `${after.events.length} events after the restart`)
    assert.deepEqual(seen.slice(1), await wholeLog(again, seen))
    assert.equal(new Set(seen.map((event) => event.id)).size, seen.length)
    assert.equal(seen.filter(({ data }) => data.result.task).length, 1)
    assert.equal(seen.at(-1)?.data.result.statusUpdate.status.state, 'TASK_STATE_COMPLETED')
  } finally {
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('PL-5 all subscribers of a task receive the same events in the same order', async () => {
  const platform = await startPlatform()
  try {
    const at = { platform, workspaceId: await platform.exec(LINES) }
    const first = await open(at, send('go'))
    await waitUntil(() => first.events.length > 0)
    const call = subscribe(taskIdOf(first.events))
    const others = await Promise.all(Array.from({ length: 20 }, () => open(at, call, first.events[0]?.id)))
    await Promise.all([first, ...others].map(({ ended }) => ended))
    for (const other of others) assert.deepEqual(other.events, first.events.slice(1))
  } finally {
    await platform.dispose()
  }
})

test('PL-5 a late subscriber first receives the text so far, then the rest', async () => {
  const platform = await startPlatform()
  try {
    const at = { platform, workspaceId: await platform.exec(LINES) }
    const first = await open(at, send('go'))
    await waitUntil(() => first.events.length >= 5)
    const late = await open(at, subscribe(taskIdOf(first.events)))
    assert.equal(await late.ended, 'ended')
    const [snapshot, ...later] = late.events.map(({ data }) => data.result)
    let text = snapshot.task.artifacts[0].parts[0].text
    assert.match(text, /^line 1\n/)
    const updates = later.flatMap(({ artifactUpdate }) => artifactUpdate ?? [])
    for (const { append, artifact } of updates) if (append) text += artifact.parts[0].text
    assert.ok(updates.at(-1).artifact.parts[0].text.startsWith(text))
  } finally {
    await platform.dispose()
  }
})
