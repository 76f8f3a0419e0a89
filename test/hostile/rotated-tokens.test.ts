/** Streams that were opened with a secret which a rotation has replaced, on a real platform. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bearerOptions, connectSocket } from '../harness/clients/socket-client.ts'
import { openStream } from '../harness/open-door.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const TOKEN_REVOKED = 4401

test('PL-12 a rotation closes the streams of the old secret after the overlap; those of the new secret stay open', async (t) => {
  const platform = await startPlatformFor(t)
  const id = await platform.exec('cat')
  const { body: first } = await platform.request('POST', '/tokens', { name: 'reader', role: 'viewer' })
  const open = async (token: string) => {
    const stream = await openStream(`${platform.url}/workspaces/${id}/events`, { method: 'GET', token })
    assert.equal(stream.status, 200)
    t.after(stream.leave)
    const socket = await connectSocket(platform.url, bearerOptions(token))
    t.after(() => socket.socket.terminate())
    return { stream, socket }
  }
  const old = await open(first.token)
  const { body: second } = await platform.request('POST', `/tokens/${first.id}/rotate`, { overlap: '1s' })
  const current = await open(second.token)
  assert.equal(await old.socket.closed, TOKEN_REVOKED)
  await old.stream.ended
  assert.equal(current.socket.socket.readyState, current.socket.socket.OPEN)
  const { length } = current.stream.events
  await platform.send(id, 'hello')
  await waitUntil(() => current.stream.events.length > length)
  const { body: third } = await platform.request('POST', `/tokens/${first.id}/rotate`, { overlap: '0s' })
  assert.equal(await current.socket.closed, TOKEN_REVOKED)
  assert.equal((await fetch(`${platform.url}/workspaces`, bearer(third.token))).status, 200)
})

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
