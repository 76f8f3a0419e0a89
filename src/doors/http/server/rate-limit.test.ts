import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { createRateLimit, REQUESTS_PER_MINUTE_MAX } from './rate-limit.ts'

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
