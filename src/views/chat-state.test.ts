import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskState } from '../protocol/a2a.ts'
import { type ChatStateRow, chatStateOf } from './chat-state.ts'

const ROW: ChatStateRow = {
  state: 'done',
  task_state: 'TASK_STATE_COMPLETED',
  parks: 0,
  failures: 0,
  losses: 0,
  ready_at: 5,
  now: 5,
  is_newest: 1,
}
const shown = (row: Partial<ChatStateRow>) => chatStateOf({ ...ROW, ...row })

test('CV-2 a queued message waits its turn, for a limit of the provider, or for its next try', () => {
  const queued = { state: 'queued' }
  assert.equal(shown(queued), 'queued')
  assert.equal(shown({ ...queued, parks: 1 }), 'queued')
  assert.equal(shown({ ...queued, ready_at: 6 }), 'parked')
  assert.equal(shown({ ...queued, ready_at: 6, parks: 1 }), 'rate_limited')
})

test('CV-2 a running message runs, or waits for a person', () => {
  const leased = (task_state: TaskState) => shown({ state: 'leased', task_state })
  assert.equal(leased('TASK_STATE_WORKING'), 'running')
  assert.equal(leased('TASK_STATE_INPUT_REQUIRED'), 'waiting_for_you')
  assert.equal(leased('TASK_STATE_AUTH_REQUIRED'), 'waiting_for_you')
})

test('CV-2 a cancelled message is stopped, also while its processes end, and a dead letter failed', () => {
  assert.deepEqual(
    ['stopping', 'canceled', 'dead'].map((state) => shown({ state })),
    ['stopped', 'stopped', 'failed'],
  )
})

test('CV-9 a message that answers a running turn is answered, whatever that turn asks next', () => {
  const states = ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_REJECTED'] as const
  assert.deepEqual(
    states.map((task_state) => shown({ state: 'answer', task_state })),
    ['answered', 'answered', 'answered'],
  )
})

test('CV-2 only the newest message of a task is in its state; the others are answered', () => {
  const states = ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_REJECTED'] as const
  assert.deepEqual(
    states.map((task_state) => shown({ task_state })),
    ['waiting_for_you', 'waiting_for_you', 'failed'],
  )
  assert.deepEqual(
    states.map((task_state) => shown({ task_state, is_newest: 0 })),
    ['answered', 'answered', 'answered'],
  )
  assert.equal(shown({}), 'answered')
})
