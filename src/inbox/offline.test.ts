/** When a workspace that runs elsewhere counts as offline, and the sentence that says why. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whyOffline } from './offline.ts'

test('PL-4 a workspace is offline after 90 s without a heartbeat, when its bridge was stopped, and before its first one', () => {
  const heard = (agoMs: number) => ({ nowMs: 1_000_000, heardAtMs: 1_000_000 - agoMs })
  assert.equal(whyOffline(heard(0)), undefined)
  assert.equal(whyOffline(heard(90_000)), undefined)
  assert.equal(whyOffline(heard(90_001)), 'no heartbeat for 90 s')
  assert.equal(whyOffline(heard(125_999)), 'no heartbeat for 125 s')
  assert.equal(whyOffline({ ...heard(0), hasSignedOff: false }), undefined)
  assert.equal(whyOffline({ ...heard(0), hasSignedOff: true }), 'its bridge was stopped')
  assert.equal(whyOffline({ nowMs: 1_000_000, heardAtMs: undefined }), 'it has never connected')
  assert.equal(whyOffline({ nowMs: 1_000_000, heardAtMs: undefined, hasSignedOff: true }), 'it has never connected')
})
