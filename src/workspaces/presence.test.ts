import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PresenceInput, presenceOf } from './presence.ts'

const NOW_MS = 1_000_000
const hosted: PresenceInput = { nowMs: NOW_MS, stored: 'online', paused: false, hosted: true }
const elsewhere: PresenceInput = { ...hosted, hosted: false, heardAtMs: NOW_MS - 1000 }

test('PL-4 a workspace that the platform runs is online, or failed with its reason, or paused', () => {
  assert.deepEqual(presenceOf(hosted), { status: 'online' })
  const failed = presenceOf({ ...hosted, stored: 'failed', storedReason: 'no such program' })
  assert.deepEqual(failed, { status: 'failed', statusReason: 'no such program' })
  assert.equal(presenceOf({ ...hosted, stored: 'failed', paused: true }).status, 'paused')
  assert.equal(
    presenceOf({ ...hosted, heardAtMs: 0 }).status,
    'online',
    'the platform needs no heartbeat of a workspace that it runs',
  )
})

test('PL-4 a workspace that runs elsewhere is offline before its first heartbeat and 90 s after its last', () => {
  const { heardAtMs: _, ...unheard } = elsewhere
  assert.equal(presenceOf(unheard).status, 'offline')
  assert.match(presenceOf(unheard).statusReason ?? '', /never connected/)
  assert.deepEqual(presenceOf(elsewhere), { status: 'online' })
  assert.equal(presenceOf({ ...elsewhere, heardAtMs: NOW_MS - 90_000 }).status, 'online')
  const silent = presenceOf({ ...elsewhere, heardAtMs: NOW_MS - 90_001 })
  assert.equal(silent.status, 'offline')
  assert.match(silent.statusReason ?? '', /90 s/)
})

test('PL-4 a workspace whose bridge signed off is offline at once', () => {
  const gone = presenceOf({ ...elsewhere, hasSignedOff: true })
  assert.deepEqual(gone, { status: 'offline', statusReason: 'its bridge was stopped' })
})

test('AG-16 a workspace with a turn that waits for a permission says so; a worse state comes first', () => {
  const reason = 'a turn waits for your permission: see "molecule pending"'
  assert.deepEqual(presenceOf({ ...hosted, permissionsAsked: 1 }), { status: 'online', statusReason: reason })
  assert.match(
    presenceOf({ ...elsewhere, permissionsAsked: 3 }).statusReason ?? '',
    /^3 turns wait for your permission/,
  )
  assert.deepEqual(presenceOf({ ...hosted, permissionsAsked: 0 }), { status: 'online' })
  assert.equal(presenceOf({ ...elsewhere, permissionsAsked: 1, hasSignedOff: true }).status, 'offline')
  assert.match(
    presenceOf({ ...elsewhere, permissionsAsked: 1, report: { problem: 'it is stuck' } }).statusReason ?? '',
    /stuck/,
  )
})

test('RT-14 a hosted workspace is degraded while its message is parked, and not by an old report of a bridge', () => {
  const parkedStatus = JSON.stringify({ parts: [{ text: 'the rate limit is reached' }] })
  assert.deepEqual(presenceOf({ ...hosted, parkedStatus }), {
    status: 'degraded',
    statusReason: 'a message waits: the rate limit is reached',
  })
  const report = { problem: 'the disk is full' }
  assert.equal(presenceOf({ ...hosted, report, heardAtMs: NOW_MS - 90_000 }).statusReason, 'the disk is full')
  assert.deepEqual(presenceOf({ ...hosted, report, heardAtMs: NOW_MS - 90_001 }), { status: 'online' })
  assert.deepEqual(presenceOf({ ...hosted, readySinceMs: NOW_MS - 61_000 }), { status: 'online' })
})

test('PL-4 a workspace is degraded, with the reason, from its edge on: a minute of waiting, half of the turns, each bad state, and the exact sentences', () => {
  const statusOf = (input: Partial<PresenceInput>) => presenceOf({ ...elsewhere, ...input })
  assert.deepEqual(statusOf({ readySinceMs: NOW_MS - 60_000 }), { status: 'online' })
  assert.deepEqual(statusOf({ readySinceMs: NOW_MS - 60_999 }), {
    status: 'degraded',
    statusReason: 'it is alive and takes no messages: one has waited for 1m0s',
  })
  assert.deepEqual(statusOf({ report: { error_rate: 1 } }), {
    status: 'degraded',
    statusReason: '100 % of its turns fail',
  })
  for (const state of ['wedged', 'degraded', 'failed']) {
    const statusReason = `its runtime reports the state ${state}`
    assert.deepEqual(statusOf({ report: { runtime_state: state } }), { status: 'degraded', statusReason })
  }
  assert.deepEqual(statusOf({ report: {} }), { status: 'online' })
  assert.equal(statusOf({ report: { error_rate: 0.49, runtime_state: 'ok' } }).status, 'online')
  assert.equal(statusOf({ report: { error_rate: 0.5 } }).status, 'degraded')
  assert.deepEqual(statusOf({ report: { problem: '~' } }), { status: 'degraded', statusReason: '~' })
})

test('CN-3 a bridge that says only that its agent needs a log-in gets a sentence; one that is not logged in is not degraded', () => {
  const report = { runtime_state: 'needs_login' }
  assert.deepEqual(presenceOf({ ...elsewhere, report }), {
    status: 'needs_login',
    statusReason: 'its agent is not logged in',
  })
  assert.deepEqual(presenceOf({ ...hosted, report }), { status: 'online' })
})

test('RT-14 the reason of a parked message is the sentence of its task, without the word in front of it', () => {
  const reasonOf = (parts: object[]) => presenceOf({ ...hosted, parkedStatus: JSON.stringify({ parts }) }).statusReason
  assert.equal(reasonOf([{ text: 'waiting: a limit' }, { text: 'more' }]), 'a message waits: a limit')
  assert.equal(reasonOf([]), 'a message waits: ')
})
