import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { envelopeOf, NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import type { TaskQuery } from '../inbox.ts'
import { coversPrincipal, topPrincipal } from './principals.ts'
import { listTasks } from './task-list.ts'

const MIB = 1024 * 1024

async function openList(t: TestContext) {
  const rows = await openStoredRows(t)
  const list = (query: Partial<TaskQuery>) =>
    rows.store.read(() => listTasks({ workspaceId: 'ws_1', limit: 10, ...query }))
  const ids = async (query: Partial<TaskQuery>) => {
    const { tasks, ...page } = await list(query)
    return { ...page, ids: tasks.map(({ id }) => id) }
  }
  return { ...rows, list, ids }
}

test('PL-23 a list has the last changed tasks first, and its cursor goes on after the last one, also at the same time', async (t) => {
  const { add, ids } = await openList(t)
  const changed = (id: string, atMs: number, more: object = {}) => ({ id, updated_at: NOON_MS + atMs, ...more })
  await add({
    tasks: [changed('a', 1), changed('b', 2), changed('c', 2), changed('d', 2), changed('e', 3)],
  })
  await add({ tasks: [changed('x', 2, { workspace_id: 'ws_2' })] })
  assert.deepEqual(await ids({}), { ids: ['e', 'd', 'c', 'b', 'a'], total: 5 })
  assert.deepEqual(await ids({ limit: 5 }), { ids: ['e', 'd', 'c', 'b', 'a'], total: 5 })
  assert.deepEqual((await ids({ limit: 2 })).ids, ['e', 'd'])
  const next = { updatedAtMs: NOON_MS + 2, id: 'c' }
  assert.deepEqual(await ids({ limit: 3 }), { ids: ['e', 'd', 'c'], total: 5, next })
  assert.deepEqual(await ids({ limit: 3, after: next }), { ids: ['b', 'a'], total: 5 })
  assert.deepEqual(await ids({ limit: 1, after: next }), {
    ids: ['b'],
    total: 5,
    next: { updatedAtMs: NOON_MS + 2, id: 'b' },
  })
  assert.deepEqual(await ids({ workspaceId: 'ws_9' }), { ids: [], total: 0 })
})

test('PL-23 a list is filtered by principal, context, state and time of the last change', async (t) => {
  const { add, ids } = await openList(t)
  await add({
    tasks: [
      { id: 'a', principal: 'ws:A' },
      { id: 'b', principal: 'ws:A/c1', context_id: 'ctx', updated_at: NOON_MS - 1 },
      { id: 'c', principal: 'ws:AB', state: 'TASK_STATE_FAILED', updated_at: NOON_MS - 2 },
      { id: 'd', principal: 'ws:B/ws:A/c1', context_id: 'ctx', updated_at: NOON_MS - 3 },
    ],
  })
  const found = async (query: Partial<TaskQuery>) => {
    const { ids: shown, total } = await ids(query)
    assert.equal(total, shown.length)
    return shown.join('')
  }
  assert.equal(await found({ principal: 'ws:A' }), 'ab')
  assert.equal(await found({ principal: 'ws:A/c1' }), 'b')
  assert.equal(await found({ contextId: 'ctx' }), 'bd')
  assert.equal(await found({ state: 'TASK_STATE_FAILED' }), 'c')
  assert.equal(await found({ changedSinceMs: NOON_MS - 1 }), 'ab')
  assert.equal(
    await found({ principal: 'ws:A', contextId: 'ctx', state: 'TASK_STATE_COMPLETED', changedSinceMs: 1 }),
    'b',
  )
  const second = await ids({ principal: 'ws:A', after: { updatedAtMs: NOON_MS, id: 'a' } })
  assert.deepEqual(second, { ids: ['b'], total: 2 })
})

test('PL-23 a list shows of its tasks what the query asks for', async (t) => {
  const { add, list } = await openList(t)
  const status = JSON.stringify({ parts: [{ text: 'it broke' }], detail: 'stderr' })
  await add({
    tasks: [{ id: 't1', status_message: status }],
    messages: [
      { id: 't1', envelope: envelopeOf('one'), reply: replyOf('done') },
      { id: 'm2', n: 2, task_id: 't1', envelope: envelopeOf('two') },
    ],
  })
  const shown = async (query: Partial<TaskQuery>) => {
    const [task] = (await list(query)).tasks
    return [task?.history?.length, task?.artifacts?.length, task?.status.message?.parts[0]?.text]
  }
  assert.deepEqual(await shown({}), [2, 1, 'it broke'])
  assert.deepEqual(await shown({ historyLength: 1, artifacts: false }), [1, undefined, 'it broke'])
  assert.deepEqual(await shown({ historyLength: 0, detail: true }), [undefined, 1, 'it broke\nstderr'])
})

test('PL-23 a list ends at 1 MiB of what it shows and has at least one task', async (t) => {
  const { add, ids, sql } = await openList(t)
  const sized = (bytes: number) => envelopeOf('x'.repeat(bytes - envelopeOf('').length))
  const reply = (bytes: number) => replyOf('x'.repeat(bytes - replyOf('').length))
  await add({
    tasks: ['a', 'b', 'c'].map((id) => ({ id })),
    messages: ['a', 'b', 'c'].map((id, n) => ({ id, n, envelope: sized(MIB / 2) })),
  })
  const shown = async (query: Partial<TaskQuery> = {}) => {
    const { ids: found, next } = await ids(query)
    assert.equal(next?.id, found.length < 3 ? found.at(-1) : undefined)
    return found.join('')
  }
  assert.deepEqual([await shown(), await shown({ historyLength: 1 })], ['cb', 'cb'])
  assert.deepEqual([await shown({ artifacts: false }), await shown({ historyLength: 0 })], ['cb', 'cba'])
  await sql(`update tasks set updated_at = updated_at + 1 where id = 'a'`)
  assert.equal(await shown(), 'ac')
  await sql(`update tasks set updated_at = updated_at - 1 where id = 'a'`)
  await sql(`update tasks set status_message = '{"parts":[]}' where id = 'b'`)
  assert.deepEqual([await shown(), await shown({ historyLength: 0 })], ['c', 'cba'])
  await sql('update messages set envelope = $1', sized(2 * MIB))
  assert.deepEqual([await shown(), await shown({ historyLength: 0, artifacts: false })], ['c', 'cba'])
  await sql('update messages set envelope = $1, reply = $2', envelopeOf('x'), reply(MIB / 2))
  assert.deepEqual([await shown({ historyLength: 0 }), await shown({ artifacts: false })], ['c', 'cba'])
  await sql(`update tasks set status_message = null`)
  assert.deepEqual([await shown({ historyLength: 0 }), await shown()], ['cb', 'c'])
  await sql(`update tasks set status_message = $1`, JSON.stringify({ parts: [{ text: 'x'.repeat(MIB) }] }))
  assert.equal(await shown({ historyLength: 0, artifacts: false }), 'c')
})

test('PL-12 a workspace sees what its conversations sent, and a conversation only its own', () => {
  assert.equal(coversPrincipal('ws:A', 'ws:A'), true)
  assert.equal(coversPrincipal('ws:A', 'ws:A/c1'), true)
  assert.equal(coversPrincipal('ws:A/c1', 'ws:A'), false)
  assert.equal(coversPrincipal('ws:A', 'ws:AB'), false)
  assert.deepEqual([topPrincipal('ws:A/c1/x'), topPrincipal('people')], ['ws:A', 'people'])
})
