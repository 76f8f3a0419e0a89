import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { secretOf } from '../../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../../test/harness/open-door.ts'
import { createWrongTokenLimit, WRONG_TOKENS_PER_MINUTE_MAX } from './wrong-token-limit.ts'

test('PL-9 wrong tokens from one address are limited, over A2A too, and a token that was good before is still taken', async (t) => {
  const { sendRequest, rpc } = await openDoor(t)
  const used = { token: secretOf('viewer') }
  assert.equal((await sendRequest('/workspaces', used)).status, 200)
  for (let tries = 0; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) {
    assert.equal((await sendRequest('/workspaces', { token: `wrong-${tries}` })).status, 401)
  }
  const { status, headers, json } = await sendRequest('/workspaces', { token: 'wrong-again' })
  assert.deepEqual([status, json.error.code], [429, 'too_many_requests'])
  assert.ok(Number(headers['retry-after']) > 0 && Number(headers['retry-after']) <= 60)
  assert.equal((await rpc('SendMessage', sendParams('hi'), { token: 'wrong' })).status, 429)
  assert.equal((await sendRequest('/workspaces', used)).status, 200)
  // Who was not known before has to wait: a right guess must not be told from a wrong one.
  assert.equal((await sendRequest('/workspaces', { token: secretOf('member') })).status, 429)
  assert.equal((await sendRequest('/workspaces')).status, 401, 'without a token nothing is guessed')
})

test('PL-9 the limit on wrong tokens is by address, ends with its minute, and a revoked token counts as wrong', async () => {
  const clock = manualClock()
  const wrong = createWrongTokenLimit(clock)
  const nobody = async () => undefined
  let looked = 0
  const look = async () => {
    looked += 1
    return undefined
  }
  for (let tries = 0; tries < WRONG_TOKENS_PER_MINUTE_MAX; tries++) await wrong.verify(`${tries}`, '10.0.0.1', nobody)
  await assert.rejects(wrong.verify('x', '10.0.0.1', look), { code: 'too_many_requests', retryable: true })
  assert.equal(looked, 0, 'the store is not asked any more')
  assert.equal(await wrong.verify('x', '10.0.0.2', look), undefined)
  clock.advance(60_001)
  assert.equal(await wrong.verify('x', '10.0.0.1', look), undefined)
  assert.equal(looked, 2)
})
