/** A cancel, row by row: what waits is cancelled, what runs is stopped, and other tasks move up. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { keyOf, openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { TaskView } from '../inbox.ts'
import { type CanceledTask, cancel } from './cancel.ts'
import type { StatusMessage } from './status-message.ts'

async function openCancel(t: TestContext) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { running: 3, waiting: 5 })
  await rows.bystanders()
  rows.clock.advance(10)
  let output: CanceledTask | undefined
  const canceled = (taskId: string, view: TaskView = {}, status?: StatusMessage) =>
    rows.changes(async () => (output = await rows.write(() => cancel(taskId, view, status))))
  return { ...rows, canceled, output: () => output }
}

const NOW_MS = START_MS + 10
const CANCELED = 'TASK_STATE_CANCELED'
const ended = { state: 'canceled', outcome: 'stopped', settled_at: NOW_MS }
const event = (taskId: string, messageId: string, status: object = {}) => ({
  task_id: taskId,
  message_id: messageId,
  at_ms: NOW_MS,
  delta: 0,
  items: [{ t: 'status', state: CANCELED, ...status }],
})

test('IN-8 the waiting messages of a cancelled task never run, and the next task of the conversation moves up', async (t) => {
  const { message, canceled, output } = await openCancel(t)
  await message('m')
  await message('m2', { task_id: 'm', conversation_id: 'c-m', n: 2 })
  await message('next', { conversation_id: 'c-m', n: 3, ready_at: START_MS + 5 })
  const status = { parts: [{ text: 'the parent was cancelled' }], code: 'canceled' }
  assert.deepEqual(await canceled('m', {}, status), {
    'workspace_load w': { waiting: 3, seq: 1 },
    'conversations c-m': { ready_at: START_MS + 5 },
    'tasks m': { state: CANCELED, status_message: status, updated_at: NOW_MS },
    'messages m': ended,
    'messages m2': ended,
    'events w 1': event('m', 'm', status),
  })
  assert.deepEqual(output(), { workspaceId: 'w' })
})

test('IN-8 one waiting message of a task is cancelled, and its conversation has nothing ready', async (t) => {
  const { message, canceled } = await openCancel(t)
  await message('m')
  const changed = await canceled('m')
  assert.deepEqual(changed['conversations c-m'], { ready_at: null })
  assert.deepEqual(changed['workspace_load w'], { waiting: 4, seq: 1 })
})

test('IN-8 a running message is stopped and keeps its lease; the cancel names its worker', async (t) => {
  const { message, canceled, output } = await openCancel(t)
  await message('m', { state: 'leased' })
  await message('m2', { task_id: 'm', conversation_id: 'c-m', n: 2 })
  assert.deepEqual(await canceled('m'), {
    'workspace_load w': { waiting: 4, seq: 1 },
    'tasks m': { state: CANCELED, updated_at: NOW_MS },
    'messages m': { state: 'stopping' },
    'messages m2': ended,
    'events w 1': event('m', 'm'),
  })
  assert.deepEqual(output(), { workspaceId: 'w', running: { key: keyOf('m'), worker: WORKER } })
})

test('IN-8 a task that waits for its caller is cancelled with its last message', async (t) => {
  const { message, canceled, plant, output } = await openCancel(t)
  const place = { workspace_id: 'w', conversation_id: 'c-m', context_id: 'x', principal: 'people' }
  await plant('tasks', { id: 'm', ...place, state: 'TASK_STATE_INPUT_REQUIRED', created_at: 1, updated_at: 1 })
  await message('m', { task_id: 'm', state: 'done' })
  await message('m2', { task_id: 'm', conversation_id: 'c-m', n: 2, state: 'done' })
  assert.deepEqual(await canceled('m'), {
    'workspace_load w': { seq: 1 },
    'tasks m': { state: CANCELED, updated_at: NOW_MS },
    'events w 1': event('m', 'm2'),
  })
  assert.deepEqual(output(), { workspaceId: 'w' })
})

test('TW-3 the sender of a delegation that cancels it gets no message about its end; another canceller changes nothing of that', async (t) => {
  const { message, canceled } = await openCancel(t)
  await message('bystander', { child_open: 1 })
  for (const [id, view, child] of [
    ['own', { principal: 'people' }, { child_open: 0 }] as const,
    ['owner', {}, {}] as const,
  ]) {
    await message(id, { child_open: 1 })
    await message(`${id}-more`, { task_id: id, conversation_id: `c-${id}`, n: 2 })
    const changed = await canceled(id, view)
    assert.deepEqual(changed[`messages ${id}`], { ...ended, ...child })
    assert.deepEqual([changed[`messages ${id}-more`], changed['messages bystander']], [ended, undefined])
  }
})

test('IN-8 a cancel of a cancelled task changes nothing; a task that ended, or is not there, refuses', async (t) => {
  const { canceled, output } = await openCancel(t)
  assert.deepEqual(await canceled('w-canceled'), {})
  assert.deepEqual(output(), { workspaceId: 'w' })
  const refused = (code: string, message: string) => (error: unknown) =>
    error instanceof MoleculeError && error.code === code && error.message === message
  const text = 'task w-done has ended already (TASK_STATE_COMPLETED)'
  await assert.rejects(canceled('w-done'), refused('not_cancelable', text))
  await assert.rejects(canceled('none'), (error) => error instanceof MoleculeError && error.code === 'not_found')
})
