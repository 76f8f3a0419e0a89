import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { findWorkspace, listWorkspaces } from './workspace-rows.ts'

interface ParkedMessage {
  readonly id: string
  readonly workspaceId: string
  readonly n?: number
  readonly parks?: number
  readonly settledAt?: number | null
  readonly settledN?: number
  readonly readyAt?: number | null
}

async function openParked(t: TestContext) {
  const opened = openTestStore(t)
  const { insert, store } = opened
  const [first, other] = [await opened.addWorkspace(), await opened.addWorkspace()]
  /** A message alone in its conversation; its task says the id. */
  const park = async (message: ParkedMessage) => {
    const { id, n = 2, parks = 1, settledAt = null, settledN = 1, readyAt = START_MS + 1000 } = message
    const { workspaceId } = message
    await insert('conversations', { id, workspace_id: workspaceId, settled_n: settledN, ready_at: readyAt })
    const status = JSON.stringify({ parts: [{ text: `waiting: ${id}` }] })
    await insert('tasks', { id, workspace_id: workspaceId, state: 's', status_message: status })
    const place = { workspace_id: workspaceId, conversation_id: id, task_id: id, n }
    await insert('messages', { id, ...place, state: 'queued', parks, settled_at: settledAt })
  }
  const reason = async (id: string) => {
    const found = await store.read(() => findWorkspace(id))
    const listed = (await store.read(listWorkspaces)).find((one) => one.id === id)
    assert.equal(listed?.statusReason, found?.statusReason)
    return found?.statusReason
  }
  return { ...opened, workspaceId: first, other, park, reason }
}

test('RT-14 a workspace with a parked message says why, and another workspace does not', async (t) => {
  const { park, reason, workspaceId, other } = await openParked(t)
  await park({ id: 'parked', workspaceId })
  assert.deepEqual([await reason(workspaceId), await reason(other)], ['a message waits: parked', undefined])
})

test('RT-14 of several parked messages the one that is tried next counts', async (t) => {
  const { park, reason, workspaceId } = await openParked(t)
  await park({ id: 'later', workspaceId, readyAt: START_MS + 2000 })
  await park({ id: 'next', workspaceId, readyAt: START_MS + 1 })
  assert.equal(await reason(workspaceId), 'a message waits: next')
})

test('RT-14 a message that is ready, settled or never parked is not a reason', async (t) => {
  const { park, reason, workspaceId } = await openParked(t)
  await park({ id: 'ready now', workspaceId, readyAt: START_MS })
  await park({ id: 'not ready', workspaceId, readyAt: null })
  await park({ id: 'settled', workspaceId, settledAt: START_MS })
  await park({ id: 'settled before', workspaceId, n: 1, settledN: 1 })
  await park({ id: 'retried', workspaceId, parks: 0 })
  assert.equal(await reason(workspaceId), undefined)
})

test('TW-10 a message that waits for a budget is a reason too', async (t) => {
  const { park, reason, insert, workspaceId, other } = await openParked(t)
  await park({ id: 'spent', workspaceId, parks: 0 })
  await park({ id: 'retried', workspaceId: other, parks: 0 })
  await insert('budget_waits', { message_id: 'spent' })
  assert.deepEqual([await reason(workspaceId), await reason(other)], ['a message waits: spent', undefined])
})
