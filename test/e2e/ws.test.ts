/** `WS /ws` of a real platform, whose client is disconnected and whose platform is killed. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { bearerOptions, connectSocket, type SocketClient } from '../harness/clients/socket-client.ts'
import { startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const repliesIn = (listeners: readonly SocketClient[]) =>
  listeners
    .flatMap(({ messages }) => messages.flatMap(({ events = [] }) => events))
    .filter(({ type }) => type === 'reply')

test('PL-7 PL-4 across disconnects and a killed platform every event of every workspace arrives once', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  let platform = await startPlatform({ dataDir })
  const listeners: SocketClient[] = []
  const listen = async (subscription: object) => {
    const listener = await connectSocket(platform.url, bearerOptions(platform.token))
    listeners.push(listener)
    listener.send(subscription)
    return listener
  }
  /** The last sequence number of each workspace that the clients have received. */
  const cursors = () => {
    const last: Record<string, number> = {}
    for (const { messages } of listeners) {
      for (const { workspace, seq } of messages) if (typeof seq === 'number') last[workspace] = seq
    }
    return last
  }
  try {
    const one = await platform.exec('echo one; sleep 0.1; echo two')
    const first = await listen({ subscribe: {}, others: 'beginning' })
    await platform.send(one, 'a')
    await waitUntil(() => first.seqs(one).length > 0)
    first.socket.terminate()
    await first.closed
    await platform.send(one, 'b')
    // Created while no client is connected: `others: 'beginning'` delivers it from its first event.
    const two = await platform.exec('cat')
    await platform.send(two, 'c')
    const second = await listen({ subscribe: cursors(), others: 'beginning' })
    await platform.send(one, 'd')
    await platform.stop('SIGKILL')
    await second.closed
    platform = await startPlatform({ dataDir })
    const third = await listen({ subscribe: cursors(), others: 'beginning' })
    await platform.send(two, 'e')
    await waitUntil(() => repliesIn(listeners).length === 5)
    for (const id of [one, two]) {
      const seqs = listeners.flatMap((listener) => listener.seqs(id))
      assert.deepEqual(
        seqs,
        Array.from({ length: seqs.length }, (_, index) => index + 1),
        'every number arrives exactly once',
      )
    }
    third.socket.terminate()
  } finally {
    for (const { socket } of listeners) socket.terminate()
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('PL-7 PL-4 _platform shows the current task, pause, presence and deletion of a workspace live', async () => {
  const platform = await startPlatform()
  const listener = await connectSocket(platform.url, bearerOptions(platform.token))
  try {
    listener.send({ subscribe: { _platform: null } })
    await waitUntil(() => listener.messages.some(({ type }) => type === 'snapshot'))
    const states = (of: string) =>
      listener.messages.filter((frame) => frame.workspace === '_platform' && frame.id === of).map(({ state }) => state)
    const waitForState = (of: string, matches: (state: Record<string, unknown>) => boolean) =>
      waitUntil(() => states(of).some((state) => state !== undefined && matches(state)))

    const id = await platform.exec('sleep 0.5; echo done')
    await waitForState(id, ({ status }) => status === 'online')
    const working = platform.send(id, 'tidy up')
    await waitForState(id, ({ current_task: task }) => task === 'tidy up')
    await working
    await waitUntil(() => states(id).at(-1)?.current_task === null)
    await platform.request('POST', `/workspaces/${id}/pause`)
    await waitForState(id, ({ status }) => status === 'paused')

    const external = { name: 'afar', runtime: 'external' }
    const { body: afar } = await platform.request('POST', '/workspaces', external)
    await waitForState(afar.id, ({ status }) => status === 'offline')
    await platform.request('POST', '/registry/register', { workspace_id: afar.id, current_task: 'reading' })
    await waitForState(afar.id, ({ status }) => status === 'online')
    await platform.request('DELETE', `/workspaces/${afar.id}?confirm=afar`)
    await waitUntil(() => listener.messages.some((frame) => frame.type === 'deleted' && frame.id === afar.id))
  } finally {
    listener.socket.terminate()
    await platform.dispose()
  }
})

test('PL-12 revoking a token closes its socket and its event stream on a real platform', async () => {
  const platform = await startPlatform()
  try {
    const { body } = await platform.request('POST', '/tokens', { name: 'screen', role: 'viewer' })
    const id = await platform.exec('cat')
    const listener = await connectSocket(platform.url, bearerOptions(body.token))
    const headers = { Authorization: `Bearer ${body.token}` }
    const events = await fetch(`${platform.url}/workspaces/${id}/events`, { headers })
    assert.equal(events.status, 200)
    await platform.request('DELETE', `/tokens/${body.id}`)
    assert.equal(await listener.closed, 4401)
    await assert.doesNotReject(events.text().catch(() => 'cut off'))
  } finally {
    await platform.dispose()
  }
})
