import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { present } from '../../../test/harness/present.ts'
import { cardStateOf } from './card-state.ts'

const stateOf = (more: Partial<WorkspaceSummary> = {}) => cardStateOf(fakeWorkspace('a', more))

test('CV-1 RT-4 a running turn is amber with its task and its time, several show their count', () => {
  const since = '2026-11-16T10:00:00.000Z'
  const state = stateOf({ running: 1, current_task: 'run the tests', current_since: since, queue_depth: 2 })
  assert.deepEqual([state.dot, state.left], ['working', '2 queued'])
  assert.deepEqual(state.banner, { kind: 'working', text: 'run the tests', since })
  assert.equal(stateOf({ running: 3, current_task: 'x' }).banner?.text, '3 turns: x')
})

test('CV-6 what waits for a person is red, also while a turn runs', () => {
  const asking = stateOf({ running: 1, needs_you: { count: 1, reason: 'a turn waits for your permission' } })
  assert.deepEqual([asking.dot, asking.banner?.text], ['needs', 'A turn waits for your permission'])
  const failed = stateOf({ status: 'failed', status_reason: 'config.yaml, line 8' })
  assert.deepEqual([failed.word, failed.banner?.text], ['needs you', 'config.yaml, line 8'])
  assert.equal(stateOf({ needs_you: null }).dot, 'online')
})

test('CV-10 a paused or working card says so when it needs a person too', () => {
  const needs_you = { count: 1, reason: 'a message failed for good' }
  const paused = stateOf({ status: 'paused', queue_depth: 2, needs_you })
  assert.deepEqual([paused.dot, paused.word, paused.left], ['needs', 'needs you, paused', 'paused · 2 waiting'])
  const working = stateOf({ running: 1, current_task: 'run the tests', queue_depth: 2, needs_you })
  assert.deepEqual([working.states, working.left], [['needs', 'working'], 'working · 2 queued'])
  const ending = stateOf({ status: 'paused', running: 1, current_task: 'run the tests' })
  assert.deepEqual([ending.dot, ending.left, ending.banner?.text], ['paused', 'paused', 'run the tests'])
})

test('CV-1 a text that is set from outside is amber, also while no turn runs; it goes when it is cleared', () => {
  const status_text_at = '2026-11-16T10:00:00.000Z'
  const said = stateOf({ status_text: 'the nightly import runs', status_text_at })
  assert.deepEqual(said.banner, { kind: 'working', text: 'the nightly import runs', since: status_text_at })
  assert.equal(said.word, 'working')
  assert.equal(stateOf({ current_task: 'Analyzing competitor data...' }).banner?.text, 'Analyzing competitor data...')
  assert.deepEqual([stateOf({ current_task: null }).banner, stateOf({ current_task: null }).left], [undefined, 'idle'])
  assert.equal(stateOf({ status: 'offline', status_text: 'x', current_task: 'y' }).banner, undefined)
})

test('paused, offline and idle say so without a banner', () => {
  assert.deepEqual(present(stateOf({ status: 'paused', queue_depth: 4 })), {
    states: ['paused'],
    dot: 'paused',
    word: 'paused',
    note: 'paused',
    left: 'paused · 4 waiting',
    right: '',
  })
  assert.equal(stateOf({ status: 'offline', status_reason: 'never connected' }).left, 'never connected')
  assert.equal(stateOf().left, 'idle')
})

test('RT-13 the cost of today is unknown where it is, and a sum with unknown parts says so', () => {
  const today = (cost_usd: number | null, unknown_turns = 0) =>
    stateOf({ today: { turns: 2, unknown_turns, cost_usd } }).right
  assert.equal(today(null, 2), 'cost unknown')
  assert.equal(today(0.41), '$0.41 today')
  assert.equal(today(0.41, 1), '≥ $0.41 today')
})

test('a workspace that waits for others says for whom, in amber', () => {
  const waiting = (...names: string[]) => cardStateOf({ ...fakeWorkspace('a'), waitsFor: names })
  assert.deepEqual([waiting('Ada').dot, waiting('Ada').banner?.text], ['working', 'waiting for Ada'])
  assert.equal(waiting('Scout', 'Ada').banner?.text, 'waiting for Scout and Ada')
  assert.equal(waiting('A', 'B', 'C', 'D').banner?.text, 'waiting for A, B and 2 more')
  assert.equal(
    cardStateOf({ ...fakeWorkspace('a', { running: 1, current_task: 'x' }), waitsFor: ['Ada'] }).banner?.text,
    'x',
  )
})
