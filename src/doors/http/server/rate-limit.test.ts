import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf, WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { BODY_BYTES, createRateLimit, REQUESTS_PER_MINUTE_MAX } from './rate-limit.ts'

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

test('PL-9 the limit of a key counts one for each call, for a minute, and names the time until the next', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock, { timesMax: 3, message: 'three a minute' })
  for (let count = 0; count < 3; count++) limit.count('a')
  clock.advance(59_999)
  assert.throws(() => limit.count('a'), {
    code: 'too_many_requests',
    message: 'three a minute',
    retryable: true,
    details: { retryAfterMs: 1 },
  })
  limit.count('b', 3)
  assert.throws(() => limit.count('b'), { details: { retryAfterMs: 60_000 } })
  clock.advance(1)
  limit.count('a', 2)
  limit.count('a')
  assert.throws(() => limit.count('a'), { details: { retryAfterMs: 60_000 } })
})

test('PL-9 a key with a new window is not the oldest: another key is forgotten first', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock, { timesMax: 1, message: 'one a minute' })
  limit.count('first')
  clock.advance(30_000)
  for (let key = 0; key < 9998; key++) limit.count(`key-${key}`)
  clock.advance(30_000)
  limit.count('first')
  assert.throws(() => limit.count('first'))
  limit.count('last')
  assert.throws(() => limit.count('key-0'), 'ten thousand keys are kept')
  limit.count('one-more')
  assert.throws(() => limit.count('first'))
  limit.count('key-0')
  assert.throws(() => limit.count('key-2'))
})

test('PL-9 a token has 600 requests and 256 MiB a minute', () => {
  const requests = createRateLimit(manualClock())
  for (let count = 0; count < 600; count++) requests.count('a')
  assert.throws(() => requests.count('a'), { message: 'this token has used its 600 requests per minute' })
  const bytes = createRateLimit(manualClock(), BODY_BYTES)
  bytes.count('a', 1)
  bytes.count('a', 256 * 1024 * 1024 - 1)
  assert.throws(() => bytes.count('a', 1), { message: 'this token has sent its 268435456 bytes per minute' })
})
