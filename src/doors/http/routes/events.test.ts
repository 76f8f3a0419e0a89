import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { createFakeActivityLogs } from '../../../../test/fakes/platform/fake-activity.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, openStream } from '../../../../test/harness/open-door.ts'
import { SSE_LIMITS } from '../server/sse.ts'

test('PL-7 the stream of a quiet workspace begins at once, and ends when its token is revoked', async (t) => {
  const { activity } = createFakeActivityLogs([WORKSPACE_ID])
  const quiet = {
    ...activity,
    // biome-ignore lint/correctness/useYield: a log without rows
    async *follow(_id: string, _seq: number, signal: AbortSignal) {
      await once(signal, 'abort')
    },
  }
  const never = { ...SSE_LIMITS, keepAliveMs: 3600_000 }
  const { url, fakePlatform } = await openDoor(t, { activity: quiet, sseLimits: never })
  const { id, secret } = await fakePlatform.tokens.create({ name: 'short', role: 'viewer' })
  for (const token of [secret, secretOf('admin')]) {
    const stream = await openStream(`${url}/workspaces/${WORKSPACE_ID}/events`, { method: 'GET', token })
    assert.equal(stream.status, 200)
    if (token === secret) await fakePlatform.tokens.revoke(id)
    else stream.leave()
    await stream.ended
  }
})
