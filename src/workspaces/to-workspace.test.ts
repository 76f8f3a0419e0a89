import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../test/harness/present.ts'
import { toWorkspace, type WorkspaceRow } from './to-workspace.ts'

const NOW_MS = 1_000_000_000
const SETTINGS = { tier: 2, maxConcurrentTasks: 1, maxAttempts: 4, workingDir: '/w', runtimeConfig: {} }
const IDLE: WorkspaceRow = {
  id: 'ws_1',
  name: 'n',
  role: 'r',
  runtime: 'mock',
  settings: JSON.stringify(SETTINGS),
  status: 'online',
  status_reason: null,
  created_at: 5,
  hosted: 1,
  paused: 0,
  slots: 1,
  running: 0,
  waiting: 3,
  turns: 0,
  since: null,
  working_on: null,
  heard_at: null,
  signed_off_at: null,
  asked: null,
  report: null,
  ready_since: null,
  parked_status: null,
  login_state: null,
  now: NOW_MS,
}
const REMOTE: WorkspaceRow = { ...IDLE, hosted: 0, heard_at: NOW_MS }
const partOf = (text: string | undefined) => (text === undefined ? { data: { n: 1 } } : { text })
const envelopeOf = (...texts: (string | undefined)[]) =>
  JSON.stringify({
    method: 'SendMessage',
    params: { message: { messageId: 'm', role: 'ROLE_USER', parts: texts.map(partOf) } },
  })
const taskOf = (row: Partial<WorkspaceRow>) => toWorkspace({ ...IDLE, ...row }).currentTask

test('PL-4 an idle workspace has its settings, its counters and no further fields', () => {
  const workspace = {
    ...SETTINGS,
    id: 'ws_1',
    name: 'n',
    role: 'r',
    runtime: 'mock',
    status: 'online',
    createdAtMs: 5,
    queueDepth: 3,
    running: 0,
  }
  assert.deepEqual(present(toWorkspace(IDLE)), workspace)
})

test('PL-4 the status follows the stored state of the row', () => {
  const statusOf = (row: Partial<WorkspaceRow>) => {
    const { status, statusReason } = toWorkspace({ ...REMOTE, ...row })
    return [status, statusReason]
  }
  assert.deepEqual(statusOf({}), ['online', undefined])
  assert.equal(statusOf({ paused: 1 })[0], 'paused')
  assert.deepEqual(statusOf({ status: 'failed', status_reason: 'broken' }), ['failed', 'broken'])
  assert.deepEqual(statusOf({ heard_at: null }), ['offline', 'it has never connected'])
  assert.deepEqual(statusOf({ heard_at: null, hosted: 1 }), ['online', undefined])
  assert.deepEqual(statusOf({ signed_off_at: 1 }), ['offline', 'its bridge was stopped'])
  assert.deepEqual(statusOf({ report: '{"problem":"stuck"}' }), ['degraded', 'stuck'])
  assert.deepEqual(statusOf({ hosted: 1, login_state: '{"problem":"log in"}' }), ['needs_login', 'log in'])
  assert.equal(statusOf({ parked_status: '{"parts":[{"text":"x"}]}' })[0], 'degraded')
})

test('PL-4 a message that waits although a slot is free makes the workspace degraded; one behind a full one does not', () => {
  const waiting = { ...REMOTE, ready_since: NOW_MS - 120_000, slots: 2 }
  assert.equal(toWorkspace({ ...waiting, running: 1 }).status, 'degraded')
  assert.equal(toWorkspace({ ...waiting, running: 2 }).status, 'online')
})

test('RT-4 the current task is that of a recent heartbeat, else the text of the message, or the number of turns', () => {
  const working = { turns: 1, running: 1, since: 9, working_on: envelopeOf('  do\n this', undefined, 'now ') }
  assert.deepEqual([taskOf(working), toWorkspace({ ...IDLE, ...working }).currentSinceMs], ['do this now', 9])
  const report = JSON.stringify({ current_task: 'reported' })
  assert.equal(taskOf({ ...working, report, heard_at: NOW_MS - 90_000 }), 'reported')
  assert.equal(taskOf({ ...working, report, heard_at: NOW_MS - 90_001 }), 'do this now')
  assert.equal(taskOf({ ...working, report }), 'do this now')
  assert.equal(taskOf({ ...working, report: '{"current_task":""}', heard_at: NOW_MS }), 'do this now')
  assert.equal(taskOf({ ...working, turns: 2 }), '2 turns running')
  assert.equal(taskOf({ turns: 1, working_on: null, working_bytes: 1025 }), 'a message of 2 KB')
  assert.equal(taskOf({ turns: 0, working_on: null, working_bytes: 1025 }), undefined)
  assert.equal(taskOf({ turns: 1, working_on: null }), undefined)
})

test('RT-4 a current task of more than 120 characters is cut', () => {
  const text = `a${'b'.repeat(119)}`
  assert.equal(taskOf({ turns: 1, working_on: envelopeOf(text) }), text)
  assert.equal(taskOf({ turns: 1, working_on: envelopeOf(`${text}c`) }), `a${'b'.repeat(118)}…`)
})
