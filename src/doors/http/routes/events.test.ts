import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, openStream, sendParams } from '../../../../test/harness/open-door.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { SSE_LIMITS } from '../server/sse.ts'
import { STREAMS_PER_TOKEN_MAX } from '../server/waiting-calls.ts'

/** A log that never grows, on a stream that sends no comments. */
function quiet() {
  const { logs } = createFakeActivityLogs([WORKSPACE_ID])
  // biome-ignore lint/correctness/useYield: a log without rows
  async function* follow(_id: string, _seq: number, signal: AbortSignal) {
    await once(signal, 'abort')
  }
  return { logs: { ...logs, follow }, sseLimits: { ...SSE_LIMITS, keepAliveMs: 3600_000 } }
}

test('PL-7 the stream of a quiet workspace begins at once, and ends when its token is revoked', async (t) => {
  const { url, fakePlatform } = await openDoor(t, quiet())
  const { id, secret } = await fakePlatform.tokens.create({ name: 'short', role: 'viewer' })
  for (const token of [secret, secretOf('admin')]) {
    const stream = await openStream(`${url}/workspaces/${WORKSPACE_ID}/events`, { method: 'GET', token })
    assert.equal(stream.status, 200)
    if (token === secret) await fakePlatform.tokens.revoke(id)
    else stream.leave()
    await stream.ended
  }
})

test('PL-9 a token has a limited number of event streams, of both kinds together; closing one frees its place', async (t) => {
  const { url, fakePlatform, rpc } = await openDoor(t, quiet())
  const { secret } = await fakePlatform.tokens.create({ name: 'greedy', role: 'member' })
  const open = (token: string) => openStream(`${url}/workspaces/${WORKSPACE_ID}/events`, { method: 'GET', token })
  const streams = await Promise.all(Array.from({ length: STREAMS_PER_TOKEN_MAX }, () => open(secret)))
  assert.ok(streams.every(({ status }) => status === 200))
  assert.equal((await open(secret)).status, 429)
  const sent = await rpc('SendStreamingMessage', sendParams('slow'), { token: secret })
  assert.equal(sent.status, 429)
  assert.equal(fakePlatform.letters.length, 0, 'nothing was admitted for a stream that was refused')
  const other = await open(secretOf('admin'))
  assert.equal(other.status, 200)
  streams[0]?.leave()
  await waitUntil(async () => {
    const again = await open(secret)
    again.leave()
    return again.status === 200
  }, 'a closed stream frees its place')
  for (const stream of [...streams, other]) stream.leave()
})
