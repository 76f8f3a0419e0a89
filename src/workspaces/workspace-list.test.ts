import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import type { Transaction } from '../store/store.ts'
import { findWorkspace, listWorkspaceIds, listWorkspacePage, listWorkspaces } from './workspace-rows.ts'

const idOf = (n: number) => `ws_${String(n).padStart(26, '0')}`

const envelopeOf = (text: string) =>
  JSON.stringify({
    method: 'SendMessage',
    params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } },
  })

function openRows(t: TestContext) {
  const opened = openTestStore(t)
  const read = <T>(transaction: () => Transaction<T>) => opened.store.read(transaction)
  const add = (n: number, hosted = 1) => opened.addWorkspace({ id: idOf(n), hosted })
  /** The workspace as the lookup, the list of all and the page of a list show it: all three must agree. */
  const seen = async (id: string) => {
    const found = await read(() => findWorkspace(id))
    assert.ok(found)
    const listed = (await read(listWorkspaces)).find((one) => one.id === id)
    const page = await read(() => listWorkspacePage({ limit: 100 }))
    assert.deepEqual([listed, page.read.find(({ workspace }) => workspace.id === id)?.workspace], [found, found])
    return found
  }
  return { ...opened, read, add, seen }
}

test('RT-4 a workspace shows its running turn, since when, and nothing of another workspace', async (t) => {
  const { add, seen, insert } = openRows(t)
  const [id, other] = [await add(1), await add(2)]
  const running = { workspace_id: id, state: 'leased', envelope: envelopeOf('the work'), leased_at: START_MS - 10 }
  await insert('messages', { ...running, conversation_id: 'c0', state: 'done', envelope: envelopeOf('done') })
  await insert('messages', { ...running, conversation_id: 'c1' })
  await insert('messages', { ...running, conversation_id: 'c2', state: 'queued', envelope: envelopeOf('later') })
  const one = await seen(id)
  assert.deepEqual([one.currentTask, one.currentSinceMs], ['the work', START_MS - 10])
  const idle = await seen(other)
  assert.deepEqual(['currentTask' in idle, 'currentSinceMs' in idle], [false, false])
  // A message that an earlier version leased has no time of its lease.
  const old = { ...running, conversation_id: 'c3', state: 'stopping', leased_at: null, admitted_at: START_MS - 20 }
  await insert('messages', old)
  const two = await seen(id)
  assert.deepEqual([two.currentTask, two.currentSinceMs], ['2 turns running', START_MS - 20])
})

test('PL-23 a list shows a running message of up to 16 KB, and of a larger one the size', async (t) => {
  const { add, read, insert } = openRows(t)
  const [exact, large] = [await add(1), await add(2)]
  const overhead = envelopeOf('').length
  const message = (id: string, length: number) => ({
    workspace_id: id,
    conversation_id: id,
    state: 'leased',
    envelope: envelopeOf('x'.repeat(length)),
  })
  await insert('messages', message(exact, 16 * 1024 - overhead))
  await insert('messages', message(large, 16 * 1024 - overhead + 1))
  const tasks = (await read(listWorkspaces)).map(({ currentTask }) => currentTask)
  assert.deepEqual(tasks, [`${'x'.repeat(119)}…`, 'a message of 17 KB'])
  assert.equal((await read(() => findWorkspace(large)))?.currentTask, `${'x'.repeat(119)}…`)
})

test('PL-4 a workspace shows its own heartbeat, open permissions, waiting and parked messages', async (t) => {
  const { add, seen, insert, run } = openRows(t)
  const [id, other] = [await add(1, 0), await add(2, 0)]
  await insert('presence', { workspace_id: id, heard_at: START_MS, report: '{"current_task":"reported"}' })
  const asked = { workspace_id: id, state: 'open', tool: 'shell' }
  await insert('asks', { ...asked, message_id: 'a1', task_id: 't1' })
  await insert('asks', { ...asked, message_id: 'a2', task_id: 't2' })
  await insert('asks', { ...asked, message_id: 'a3', task_id: 't3', state: 'answered' })
  await insert('asks', { ...asked, message_id: 'a4', task_id: 't4', tool: null })
  const one = await seen(id)
  assert.deepEqual([one.status, one.currentTask, one.permissionsAsked], ['online', 'reported', 2])
  const two = await seen(other)
  assert.deepEqual(
    [two.status, two.statusReason, two.permissionsAsked],
    ['offline', 'it has never connected', undefined],
  )
  const conversation = { workspace_id: id, ready_at: START_MS - 61_000 }
  await insert('conversations', { ...conversation, id: 'c1' })
  await insert('conversations', { ...conversation, id: 'c2', ready_at: START_MS - 10 })
  await insert('conversations', { ...conversation, id: 'c3', ready_at: null })
  await insert('conversations', { ...conversation, id: 'c4', workspace_id: other, ready_at: START_MS - 999_000 })
  const waits = await seen(id)
  assert.equal(waits.statusReason, 'it is alive and takes no messages: one has waited for 1m1s')
  await run('update workspace_load set running = slots where workspace_id = $1', id)
  assert.equal((await seen(id)).status, 'online')
})

test('PL-23 a page of workspaces has the workspaces after the last one, and a next page only if there is one', async (t) => {
  const { add, read } = openRows(t)
  for (let n = 1; n <= 3; n++) await add(n)
  const page = async (limit: number, after?: string) => {
    const found = await read(() => listWorkspacePage({ limit, ...(after !== undefined && { after }) }))
    return { ids: found.read.map(({ workspace }) => workspace.id), ...('next' in found && { next: found.next }) }
  }
  assert.deepEqual(await page(2), { ids: [idOf(1), idOf(2)], next: idOf(2) })
  assert.deepEqual(await page(2, idOf(2)), { ids: [idOf(3)] })
  assert.deepEqual(await page(3), { ids: [idOf(1), idOf(2), idOf(3)] })
  assert.deepEqual(await page(3, idOf(3)), { ids: [] })
  const ids = (after?: string) => read(() => listWorkspaceIds({ limit: 2, ...(after !== undefined && { after }) }))
  assert.deepEqual(
    [await ids(), await ids(idOf(1)), await ids(idOf(2))],
    [[idOf(1), idOf(2)], [idOf(2), idOf(3)], [idOf(3)]],
  )
})

test('PL-23 a page of workspaces ends at 1 MiB of settings, roles and reports', async (t) => {
  const { add, read, run, insert } = openRows(t)
  const half = 'x'.repeat(600 * 1024)
  for (let n = 1; n <= 5; n++) await add(n)
  await run('update workspaces set settings = $2 where id = $1', idOf(1), JSON.stringify({ runtimeConfig: { half } }))
  await run('update workspaces set role = $2 where id = $1', idOf(2), half)
  await insert('presence', { workspace_id: idOf(3), report: JSON.stringify({ problem: half }) })
  const pages: string[][] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const query: { after: string; limit: number } = { after, limit: 10 }
    const found = await read(() => listWorkspacePage(query))
    pages.push(found.read.map(({ workspace }) => workspace.id))
    after = found.next
  }
  assert.deepEqual(pages, [[idOf(1)], [idOf(2)], [idOf(3), idOf(4), idOf(5)]])
})
