/** A disk that is nearly full: new messages are refused before the last block is used. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPlatformFor } from '../harness/platform.ts'

test('RE-7 RE-10 below the floor of free space a new message gets 507 and /ready refuses; the rest works', async (t) => {
  // More than any disk has.
  const platform = await startPlatformFor(t, { args: ['--min-free-space', '999999GiB'] })
  const id = await platform.exec('cat')
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
  const { status, body } = await platform.rpc(id, 'SendMessage', { message })
  assert.equal(status, 507, JSON.stringify(body))
  assert.equal(body.error.data[0].reason, 'DISK_LOW')
  const stream = await platform.rpc(id, 'SendStreamingMessage', { message })
  assert.equal(stream.status, 507)
  const ready = await platform.request('GET', '/ready')
  assert.equal(ready.status, 503)
  assert.match(ready.body.reason, /^the disk of the platform has less than/)
  assert.equal((await platform.request('GET', `/workspaces/${id}`)).status, 200)
})
