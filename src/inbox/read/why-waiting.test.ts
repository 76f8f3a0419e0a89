import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { whyStopped, whyWaiting } from './why-waiting.ts'

const TASK = { id: 't2', workspace_id: 'ws_1', conversation_id: 'c1' }

async function openWaiting(t: TestContext) {
  const rows = await openStoredRows(t)
  await rows.add({
    workspace_load: [
      { workspace_id: 'ws_1', slots: 2, running: 1, waiting: 5 },
      { workspace_id: 'ws_2', slots: 2, paused: 1 },
    ],
    conversations: [{ id: 'c1', settled_n: 1 }, { id: 'c2' }],
    presence: [{ workspace_id: 'ws_2', heard_at: 1 }],
  })
  const why = async () => {
    const { parts, code } = await rows.store.read(() => whyWaiting(TASK))
    assert.equal(code, 'waiting')
    return parts[0]?.text
  }
  const stopped = async (hasWorker = false) => {
    const status = await rows.store.read(() => whyStopped('ws_1', () => hasWorker))
    return status?.parts[0]?.text
  }
  return { ...rows, why, stopped }
}

const PAUSED = 'waiting: the workspace is paused'
const BEHIND = 'waiting behind message t1 of the same conversation'

test('IN-7 a message waits for a worker, or for a free slot', async (t) => {
  const { why, sql } = await openWaiting(t)
  assert.equal(await why(), 'waiting for a worker')
  await sql('update workspace_load set running = 2')
  assert.equal(await why(), 'waiting for a free slot: 2 of 2 in use, 5 waiting')
  await sql('delete from workspace_load')
  assert.equal(await why(), 'waiting for a worker')
})

test('IN-7 a message waits behind the oldest unsettled message of its conversation, and says when that is tried again', async (t) => {
  const { add, why, sql } = await openWaiting(t)
  await add({
    tasks: [{ id: 't0' }, { id: 't1' }, { id: 't2' }, { id: 'x1', conversation_id: 'c2' }],
    messages: [
      { id: 't0', n: 1, settled_at: NOON_MS },
      { id: 't1', n: 2, state: 'leased', ready_at: NOON_MS + 60_000 },
      { id: 't2', n: 3, state: 'queued' },
      { id: 'x1', n: 2, state: 'queued', conversation_id: 'c2', ready_at: NOON_MS + 5000 },
    ],
  })
  const set = (table: string, values: string) => sql(`update ${table} set ${values} where id = 't1'`)
  assert.equal(await why(), BEHIND)
  await set('messages', `state = 'queued'`)
  assert.equal(await why(), `${BEHIND}, next try in 1 min`)
  await set('messages', `ready_at = ${NOON_MS + 1}`)
  assert.equal(await why(), `${BEHIND}, next try in 1 s`)
  await set('messages', 'parks = 1')
  assert.equal(await why(), `${BEHIND}: `)
  await set('tasks', `status_message = '{"parts":[{"text":"parked"}]}'`)
  assert.equal(await why(), `${BEHIND}: parked`)
  await set('messages', 'parks = 0')
  assert.equal(await why(), `${BEHIND}, next try in 1 s`)
  await set('tasks', `status_message = '{"parts":[{"text":"its budget is spent"}],"code":"waiting"}'`)
  assert.equal(await why(), `${BEHIND}: its budget is spent`)
  await set('messages', `ready_at = ${NOON_MS}`)
  assert.equal(await why(), BEHIND)
  await set('messages', 'settled_at = 1')
  assert.equal(await why(), 'waiting for a worker')
})

test('IN-7 PL-2 a message of a paused or offline workspace says so first', async (t) => {
  const { add, why, sql, clock } = await openWaiting(t)
  await sql(`update workspace_load set hosted = 0, running = 9 where workspace_id = 'ws_1'`)
  assert.equal(await why(), 'waiting: the workspace is offline (it has never connected)')
  await add({ presence: [{ workspace_id: 'ws_1' }] })
  clock.advance(90_000)
  assert.equal(await why(), 'waiting for a free slot: 9 of 2 in use, 5 waiting')
  clock.advance(1)
  assert.equal(await why(), 'waiting: the workspace is offline (no heartbeat for 90 s)')
  await sql('update presence set signed_off_at = 1')
  assert.equal(await why(), 'waiting: the workspace is offline (its bridge was stopped)')
  await sql('update workspace_load set paused = 1')
  assert.equal(await why(), PAUSED)
})

test('IN-7 PL-2 a workspace with a worker here starts messages unless it is paused', async (t) => {
  const { stopped, sql } = await openWaiting(t)
  assert.deepEqual([await stopped(), await stopped(true)], [undefined, undefined])
  await sql('update workspace_load set hosted = 0')
  const offline = 'waiting: the workspace is offline (it has never connected)'
  assert.deepEqual([await stopped(), await stopped(true)], [offline, undefined])
  await sql('update workspace_load set paused = 1')
  assert.deepEqual([await stopped(), await stopped(true)], [PAUSED, PAUSED])
  await sql('delete from workspace_load')
  assert.equal(await stopped(), undefined)
})
