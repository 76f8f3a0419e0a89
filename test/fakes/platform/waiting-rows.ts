/** A store in which something of every kind waits for a person, for views and routes. */
import type { TestContext } from 'node:test'
import { envelopeOf, writeEnvelope } from '../../../src/protocol/envelope.ts'
import { openTestStore, START_MS } from '../../harness/stores/sqlite-store.ts'
import { WORKSPACE_ID } from './fake-platform.ts'

const DAY_MS = 24 * 3600_000
export const SENDER = { kind: 'person', id: 'a', name: 'ana', door: 'http' } as const

export async function openWaitingStore(t: TestContext) {
  const opened = openTestStore(t)
  const { insert } = opened
  const own = { workspace_id: WORKSPACE_ID }
  const status = (text: string) => JSON.stringify({ parts: [{ text }], code: 'exit', detail: 'stderr' })
  const envelope = writeEnvelope(envelopeOf({ messageId: 's', parts: [{ text: 'back up' }] }))
  const common = { ...own, sender: JSON.stringify(SENDER), envelope }
  const message = async (id: string, more: object) => {
    await insert('messages', { ...common, id, task_id: id, conversation_id: `c_${id}`, ...more })
    await insert('conversations', { ...own, id: `c_${id}`, lease_epoch: 1 })
  }
  await insert('workspace_load', { ...own, slots: 1, hosted: 1 })
  const asked = { ...own, asked_at: START_MS, expires_at: START_MS + 60_000, task_id: 'asks', state: 'open' }
  await message('asks', { state: 'leased' })
  await insert('asks', { ...asked, id: '1', message_id: 'asks', tool: 'Bash', subject: 'npm test' })
  await message('hides', { state: 'leased' })
  await insert('asks', {
    ...asked,
    id: '2',
    message_id: 'hides',
    task_id: 'hides',
    tool: 'Write',
    subject: '(no input)',
  })
  const question = { state: 'TASK_STATE_INPUT_REQUIRED', context_id: 'x', status_message: status('which one?') }
  await insert('tasks', { ...own, ...question, id: 'questions', updated_at: START_MS })
  await message('spends', { state: 'queued' })
  await insert('budgets', {
    ...own,
    id: 'b_1',
    state: 'asked',
    limit_usd: 3,
    asked_at: START_MS,
    day: Math.floor(START_MS / DAY_MS),
  })
  await insert('budget_waits', { ...own, budget_id: 'b_1', message_id: 'spends' })
  await insert('turn_usage', { ...own, message_id: 'spends', cost_usd: 3.02, ended_at: START_MS })
  await message('fails', { state: 'dead', settled_at: START_MS, failures: 4, losses: 1 })
  await insert('tasks', {
    ...own,
    id: 'fails',
    context_id: 'y',
    state: 'TASK_STATE_FAILED',
    status_message: status('it broke'),
  })
  const body = JSON.stringify({ parts: [{ text: 'the answer' }] })
  await insert('deliveries', {
    ...own,
    id: 'd_1',
    state: 'unknown',
    door: 'chat:bot',
    channel: 'p',
    body,
    created_at: START_MS,
  })
  await insert('damaged_replies', { ...own, message_id: 'broken', task_id: 'broken', found_at: START_MS })
  await insert('channels', {
    name: 'bot',
    kind: 'socket',
    token: 't',
    settings: '{}',
    workspace_id: WORKSPACE_ID,
    created_at: 0,
  })
  const person = { channel: 'bot', person: 'eve', name: 'Eve', code: 'CODE', state: 'pending', role: 'user' }
  await insert('pairings', { ...person, created_at: START_MS })
  await insert('schedules', { ...own, id: 'sch_1', name: 'nightly', note: 'no token', stopped_at: START_MS })
  return opened
}
