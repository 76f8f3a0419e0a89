import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { BODY_BYTES, createRateLimit, REQUESTS_PER_MINUTE_MAX } from './rate-limit.ts'

test('PL-9 each token has 600 requests a minute, and a new minute resets the count', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock)
  for (let request = 0; request < REQUESTS_PER_MINUTE_MAX; request++) limit.count('a')
  clock.advance(59_000)
  assert.throws(() => limit.count('a'), { code: 'too_many_requests', details: { retryAfterMs: 1000 } })
  limit.count('b')
  clock.advance(1000)
  limit.count('a')
})

test('PL-9 the number of remembered tokens is bounded', () => {
  const limit = createRateLimit(manualClock())
  for (let request = 0; request < REQUESTS_PER_MINUTE_MAX; request++) limit.count('first')
  for (let token = 0; token < 9999; token++) limit.count(`token-${token}`)
  assert.throws(() => limit.count('first'))
  limit.count('one-more')
  limit.count('first')
})

test('PL-9 PL-23 each token may send 256 MiB a minute', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock, BODY_BYTES)
  for (let message = 0; message < 32; message++) limit.count('a', 8 * 1024 * 1024)
  assert.throws(() => limit.count('a', 1), { code: 'too_many_requests', details: { retryAfterMs: 60_000 } })
  limit.count('b', 8 * 1024 * 1024)
  clock.advance(60_000)
  limit.count('a', 1)
})

test('PL-9 PL-23 past its bytes a token gets 429 with Retry-After from A2A and from other routes', async (t) => {
  const { sendRequest } = await openDoor(t, { clock: manualClock() })
  const token = secretOf('member')
  const body = ' '.repeat(8 * 1024 * 1024)
  const path = `/workspaces/${WORKSPACE_ID}/a2a`
  for (let message = 0; message < 32; message++) {
    assert.equal((await sendRequest(path, { method: 'POST', token, body })).status, 200)
  }
  const refused = await sendRequest(path, { method: 'POST', token, body: '{}' })
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '60'])
  const note = { method: 'POST', token, body: '{"type":"x","text":"y"}' }
  assert.equal((await sendRequest(`/workspaces/${WORKSPACE_ID}/activity`, note)).status, 429)
})

test('PL-9 past the rate limit every route answers 429 with Retry-After; an admin is exempt', async (t) => {
  const { sendRequest, rpc } = await openDoor(t, { clock: manualClock() })
  const token = secretOf('member')
  for (let request = 0; request < REQUESTS_PER_MINUTE_MAX; request++) {
    assert.equal((await sendRequest('/version', { token })).status, 200)
  }
  const over = await sendRequest('/workspaces', { token })
  assert.equal(over.status, 429)
  assert.equal(over.json.error.code, 'too_many_requests')
  assert.equal(over.headers['retry-after'], '60')
  const message = await rpc('SendMessage', sendParams('hello'), { token })
  assert.equal(message.status, 429)
  assert.equal(message.json.error.data[0].reason, 'TOO_MANY_REQUESTS')
  assert.equal((await sendRequest('/workspaces', { token: secretOf('viewer') })).status, 200)
  for (let request = 0; request <= REQUESTS_PER_MINUTE_MAX; request++) {
    assert.equal((await sendRequest('/version', { token: secretOf('admin') })).status, 200)
  }
})
