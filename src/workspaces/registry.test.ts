import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { workspaceId } from '../ids.ts'
import { createWorkspaceRegistry, type WorkspaceRegistryOptions } from './registry.ts'

async function openRegistry(t: TestContext, options?: WorkspaceRegistryOptions) {
  const opened = openTestStore(t)
  const registry = createWorkspaceRegistry(opened.store, options)
  const id = await opened.addWorkspace({ hosted: 0 })
  const other = await opened.addWorkspace({ hosted: 0 })
  const presence = (of: string) =>
    opened.run('select registered_at, heard_at, signed_off_at, report from presence where workspace_id = $1', of)
  return { ...opened, registry, id, other, presence }
}

test('PL-4 registering replaces the report of the process before; a heartbeat merges into it', async (t) => {
  const { registry, id, other, presence, clock } = await openRegistry(t)
  await registry.register(other, { active_tasks: 9 })
  const online = await registry.register(id, { current_task: 'a', active_tasks: 1 })
  assert.deepEqual([online.id, online.status, online.currentTask], [id, 'online', 'a'])
  clock.advance(10)
  assert.equal((await registry.heartbeat(id, { current_task: 'b' })).currentTask, 'b')
  assert.deepEqual(await presence(id), [
    {
      registered_at: START_MS,
      heard_at: START_MS + 10,
      signed_off_at: null,
      report: '{"current_task":"b","active_tasks":1}',
    },
  ])
  clock.advance(10)
  await registry.register(id, { active_tasks: 2 })
  assert.deepEqual(await presence(id), [
    { registered_at: START_MS + 20, heard_at: START_MS + 20, signed_off_at: null, report: '{"active_tasks":2}' },
  ])
  assert.deepEqual(await presence(other), [
    { registered_at: START_MS, heard_at: START_MS, signed_off_at: null, report: '{"active_tasks":9}' },
  ])
})

test('PL-4 a first heartbeat registers, although another workspace has registered', async (t) => {
  const { registry, id, other, presence } = await openRegistry(t)
  await registry.register(other, { active_tasks: 9 })
  assert.equal((await registry.heartbeat(id, { current_task: 'a' })).status, 'online')
  assert.deepEqual(await presence(id), [
    { registered_at: START_MS, heard_at: START_MS, signed_off_at: null, report: '{"current_task":"a"}' },
  ])
})

test('PL-4 the last heartbeat of a process takes its workspace offline at once, until the next heartbeat', async (t) => {
  const { registry, id, other, clock, presence } = await openRegistry(t)
  await registry.register(other, { active_tasks: 9 })
  await registry.register(id, { current_task: 'a' })
  clock.advance(10)
  const gone = await registry.heartbeat(id, { runtime_state: 'stopped', current_task: 'a' })
  assert.deepEqual([gone.status, gone.statusReason, gone.currentTask], ['offline', 'its bridge was stopped', undefined])
  assert.deepEqual(await presence(id), [
    { registered_at: START_MS, heard_at: START_MS, signed_off_at: START_MS + 10, report: '{}' },
  ])
  assert.equal((await registry.heartbeat(other, {})).status, 'online')
  assert.equal((await registry.heartbeat(id, {})).status, 'online')
  await registry.heartbeat(id, { runtime_state: 'stopped' })
  assert.equal((await registry.register(id, {})).status, 'online')
})

test('CN-7 one of two bridges stops: the workspace stays online', async (t) => {
  const connected = new Set<string>()
  const { registry, id } = await openRegistry(t, { hasBridge: (of) => connected.has(of) })
  await registry.register(id, { current_task: 'a' })
  connected.add(id)
  const left = await registry.heartbeat(id, { runtime_state: 'stopped' })
  assert.deepEqual([left.status, left.currentTask], ['online', 'a'])
  connected.clear()
  assert.equal((await registry.heartbeat(id, { runtime_state: 'stopped' })).status, 'offline')
})

test('TW-8 the status text appears at once with its time, on that workspace alone; an empty text removes it', async (t) => {
  const { registry, id, other, clock } = await openRegistry(t)
  clock.advance(10)
  const busy = await registry.setStatusText(id, 'reading')
  assert.deepEqual(busy.statusText, { text: 'reading', atMs: START_MS + 10 })
  assert.equal((await registry.heartbeat(other, {})).statusText, undefined)
  assert.equal((await registry.setStatusText(id, '')).statusText, undefined)
})

test('PL-4 an unknown, malformed or deleted workspace is not found, and leaves no row', async (t) => {
  const { registry, run, addWorkspace } = await openRegistry(t)
  const deleted = await addWorkspace()
  await run('delete from workspace_load where workspace_id = $1', deleted)
  for (const id of [workspaceId(), 'ws_x', deleted]) {
    const notFound = { code: 'not_found', message: `there is no workspace ${id}` }
    await assert.rejects(registry.register(id, {}), notFound)
    await assert.rejects(registry.heartbeat(id, {}), notFound)
    await assert.rejects(registry.heartbeat(id, { runtime_state: 'stopped' }), notFound)
    await assert.rejects(registry.setStatusText(id, 'x'), notFound)
    await assert.rejects(registry.peers(id), notFound)
  }
  assert.deepEqual(await run('select workspace_id from presence'), [])
  assert.deepEqual(await run(`select id from workspaces where settings <> '{}'`), [])
})

test('PL-4 the peers of a workspace are those that it may talk to, in the order of their ids', async (t) => {
  const { registry, run, id, other, addWorkspace } = await openRegistry(t)
  const child = await addWorkspace()
  await run('update workspaces set settings = $2 where id = $1', child, JSON.stringify({ parentId: other }))
  const peers = async (of: string) => (await registry.peers(of)).map((peer) => peer.id)
  assert.deepEqual([await peers(id), await peers(other), await peers(child)], [[other], [id, child], [other]])
})

test('CN-3 a workspace works again when its process has started, or when the problem of its last report is gone', async (t) => {
  const working: string[] = []
  const { registry, id } = await openRegistry(t, { onWorking: async (of) => void working.push(of) })
  await registry.register(id, { problem: 'it failed' })
  await registry.heartbeat(id, { active_tasks: 1 })
  assert.deepEqual(working.splice(0), [id])
  await registry.heartbeat(id, { problem: '' })
  assert.deepEqual(working.splice(0), [id])
  await registry.heartbeat(id, { problem: '' })
  await registry.heartbeat(id, { problem: 'it failed again' })
  await registry.heartbeat(id, { problem: 'it failed again', runtime_state: 'stopped' })
  assert.deepEqual(working, [])
})
