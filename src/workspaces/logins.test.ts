import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome } from '../inbox/inbox.ts'
import { type LoginCheck, nextLoginState, shownByOutcome } from './logins.ts'
import { presenceOf } from './presence.ts'

const FOUND: LoginCheck = { fingerprint: 'a', refused: 'refused: run it' }
const MISSING: LoginCheck = { ...FOUND, problem: 'missing: run it' }

test('AG-1 a log-in that is not found is a problem until it is found, or a turn is answered', () => {
  assert.equal(nextLoginState(undefined, FOUND), undefined)
  const missing = nextLoginState(undefined, MISSING)
  assert.equal(missing?.problem, 'missing: run it')
  assert.equal(nextLoginState(missing, { ...FOUND, fingerprint: 'b' }), undefined)
  const answered = nextLoginState(missing, MISSING, 'accepted')
  assert.equal(answered?.problem, undefined)
  // The log-in is in a place that the check does not know; it is not looked for again until something changes.
  assert.deepEqual(nextLoginState(answered, MISSING), answered)
  assert.equal(nextLoginState(answered, { ...MISSING, fingerprint: 'b' })?.problem, 'missing: run it')
})

test('AG-1 a log-in that the provider refused is a problem until the log-in changes or a turn is answered', () => {
  const refused = nextLoginState(undefined, FOUND, 'refused')
  assert.equal(refused?.problem, 'refused: run it')
  assert.deepEqual(nextLoginState(refused, FOUND), refused)
  assert.equal(nextLoginState(refused, { ...FOUND, fingerprint: 'b' }), undefined)
  assert.equal(nextLoginState(refused, FOUND, 'accepted'), undefined)
})

test('only an answer and a refused log-in say something about the log-in', () => {
  const failed = (code: string): Outcome => ({ type: 'dead', failure: { code, message: '' } })
  assert.equal(shownByOutcome(failed('auth_failed')), 'refused')
  assert.equal(shownByOutcome(failed('rate_limited')), undefined)
  assert.equal(shownByOutcome({ type: 'stopped' }), undefined)
  assert.equal(shownByOutcome({ type: 'done', finality: 'completed', parts: [], artifacts: [] }), 'accepted')
})

test('AG-1 CN-3 a workspace whose agent is not logged in needs a login, unless it is paused, failed or offline', () => {
  const hosted = { nowMs: 1000, stored: 'online', paused: false, hosted: true } as const
  const loginState = JSON.stringify({ fingerprint: 'a', problem: 'run "claude"' })
  assert.deepEqual(presenceOf({ ...hosted, loginState }), { status: 'needs_login', statusReason: 'run "claude"' })
  assert.equal(presenceOf({ ...hosted, loginState: '{"fingerprint":"a"}' }).status, 'online')
  assert.equal(presenceOf({ ...hosted, loginState, paused: true }).status, 'paused')
  assert.equal(presenceOf({ ...hosted, loginState, stored: 'failed' }).status, 'failed')
  const report = { runtime_state: 'needs_login', problem: 'run "codex login"' }
  const bridged = { ...hosted, hosted: false, heardAtMs: 1000, report }
  assert.deepEqual(presenceOf({ ...bridged, loginState }), {
    status: 'needs_login',
    statusReason: 'run "codex login"',
  })
  assert.equal(presenceOf({ ...bridged, nowMs: 10_000_000 }).status, 'offline')
})
