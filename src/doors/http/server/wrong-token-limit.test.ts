import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { createWrongTokenLimit, WRONG_TOKENS_PER_MINUTE_MAX } from './wrong-token-limit.ts'

test('PL-9 wrong tokens from one address are limited, over A2A too, and a valid token is still accepted', async (t) => {
  const { sendRequest, rpc } = await openDoor(t)
  for (let tries = 0; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) {
    assert.equal((await sendRequest('/workspaces', { token: `wrong-${tries}` })).status, 401)
  }
  const { status, headers, json } = await sendRequest('/workspaces', { token: 'wrong-again' })
  assert.deepEqual([status, json.error.code], [429, 'too_many_requests'])
  assert.ok(Number(headers['retry-after']) > 0 && Number(headers['retry-after']) <= 60)
  assert.equal((await rpc('SendMessage', sendParams('hi'), { token: 'wrong' })).status, 429)
  assert.equal((await sendRequest('/workspaces', { token: secretOf('viewer') })).status, 200, 'its first request')
  assert.equal((await sendRequest('/workspaces')).status, 401, 'a request without a token is no guess')
})

test('PL-9 the limit on wrong tokens is per address and ends after a minute', async () => {
  const clock = manualClock()
  const wrong = createWrongTokenLimit(clock)
  const unknown = async () => undefined
  for (let tries = 0; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) await wrong.verify(`${tries}`, '10.0.0.1', unknown)
  await assert.rejects(wrong.verify('x', '10.0.0.1', unknown), { code: 'too_many_requests', retryable: true })
  assert.equal(await wrong.verify('x', '10.0.0.2', unknown), undefined)
  clock.advance(60_001)
  assert.equal(await wrong.verify('x', '10.0.0.1', unknown), undefined)
})
