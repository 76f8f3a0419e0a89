/** Streams of the real platform that the reader leaves, or that end because the platform is killed. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type OpenStream, openStream, type StreamEvent, sendParams } from '../harness/open-door.ts'
import { type PlatformUnderTest, startPlatform, startPlatformFor } from '../harness/platform.ts'
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
    for (const { append, artifact } of updates) text = (append ? text : '') + artifact.parts[0].text
    assert.equal(text, Array.from({ length: 20 }, (_, index) => `line ${index + 1}\n`).join(''))
    assert.ok(
      updates.every(({ append }) => append),
      'the reader has the artifact',
    )
    assert.equal(updates.at(-1).lastChunk, true)
  } finally {
    await platform.dispose()
  }
})

/** Leaves its task in the state that the message names. */
const ASKING_AGENT = `require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, params } = JSON.parse(line)
  const [{ text }] = params.message.parts
  const status = { state: text, message: { role: "agent", parts: [{ text: "well?" }] } }
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { status } }))
})`

const rpcBody = (method: string, id: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id } })

const SUBSCRIPTIONS: Readonly<Record<string, (id: string) => { path?: string; method?: string; body?: string }>> = {
  SubscribeToTask: (id) => ({ body: rpcBody('SubscribeToTask', id) }),
  'tasks/resubscribe': (id) => ({ body: rpcBody('tasks/resubscribe', id) }),
  'GET :subscribe': (id) => ({ method: 'GET', path: `/tasks/${id}:subscribe` }),
  'POST :subscribe': (id) => ({ path: `/tasks/${id}:subscribe` }),
}

/** The state in an event of any binding and version, as the agent wrote it; empty for an event without one. */
function stateOf({ data }: StreamEvent): string {
  const { task, statusUpdate, status, final } = data.result ?? data
  const name: string = (task ?? statusUpdate ?? { status }).status?.state ?? ''
  const state = name.replace('TASK_STATE_', '').replace('-', '_').toLowerCase()
  return final === true ? `${state}, final` : state
}

test('PL-5 a subscription stays open while its task waits for its caller, and ends with the task', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec(`${process.execPath} -e '${ASKING_AGENT}'`, { runtime: 'stdio' })
  for (const [name, subscription] of Object.entries(SUBSCRIPTIONS)) {
    for (const waiting of ['input_required', 'auth_required']) {
      const task = await platform.send(id, waiting)
      const { path = '', ...request } = subscription(task.id)
      const url = `${platform.url}/workspaces/${id}/a2a${path}`
      const stream = await openStream(url, { token: platform.token, ...request })
      await waitUntil(() => stream.events.length === 1, 'the task arrives')
      for (const next of [waiting, 'completed']) {
        const seen = stream.events.length
        await platform.send(id, next, { taskId: task.id })
        await waitUntil(() => stream.events.slice(seen).some((event) => stateOf(event).startsWith(next)), next)
      }
      assert.equal(await stream.ended, 'ended')
      const states = stream.events.map(stateOf).filter((state) => /required|completed/.test(state))
      const last = name === 'tasks/resubscribe' ? 'completed, final' : 'completed'
      assert.deepEqual(states, [waiting, waiting, last], name)
    }
  }
})
