import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import type { Transaction } from '../store/store.ts'
import type { Workspace, WorkspaceLoad } from './workspace.ts'
import {
  changeStoreOnlySettings,
  findIdsByName,
  findNumberedWorkspace,
  findSettings,
  findStoredConfig,
  findWorkspace,
  insertWorkspace,
  listTeam,
  listWorkspacePage,
  listWorkspaces,
  markDeleted,
  mirrorConfig,
  type NewWorkspaceRow,
  recordInvalidConfig,
  requireWorkspace,
  setStatusText,
} from './workspace-rows.ts'

const CONFIG: NewWorkspaceRow['config'] = {
  name: 'n',
  role: 'r',
  runtime: 'mock',
  runtimeConfig: { a: 1 },
  maxAttempts: 4,
  maxConcurrentTasks: 3,
}
const STORE_ONLY: NewWorkspaceRow['storeOnly'] = { tier: 2, workingDir: '/w' }
const idOf = (n: number) => `ws_${String(n).padStart(26, '0')}`
function openRows(t: TestContext) {
  const opened = openTestStore(t)
  const write = <T>(transaction: () => Transaction<T>) => opened.store.write(transaction)
  const read = <T>(transaction: () => Transaction<T>) => opened.store.read(transaction)
  const add = async (n: number, changes: Partial<NewWorkspaceRow> = {}) => {
    const id = idOf(n)
    const row = { id, config: CONFIG, configHash: 'h', storeOnly: STORE_ONLY, checked: { ok: true }, ...changes }
    await write(() => insertWorkspace(row as NewWorkspaceRow))
    return id
  }
  const get = async (id: string) => (await read(() => findWorkspace(id))) as Workspace & WorkspaceLoad
  /** The workspace as the lookup, the list of all and the page of a list show it: all three must agree. */
  const seen = async (id: string) => {
    const found = await get(id)
    const listed = (await read(listWorkspaces)).find((one) => one.id === id)
    const page = await read(() => listWorkspacePage({ limit: 100 }))
    assert.deepEqual([listed, page.read.find(({ workspace }) => workspace.id === id)?.workspace], [found, found])
    return found
  }
  const settings = async (id: string) =>
    JSON.parse(String((await opened.run('select settings from workspaces where id = $1', id))[0]?.['settings']))
  return { ...opened, write, read, add, get, seen, settings }
}

test('PL-2 a new workspace is stored with all its settings, and its slots', async (t) => {
  const { add, seen, run, read } = openRows(t)
  const id = await add(1)
  const plain = {
    id,
    name: 'n',
    role: 'r',
    runtime: 'mock',
    configHash: 'h',
    tier: 2,
    workingDir: '/w',
    maxConcurrentTasks: 3,
    maxAttempts: 4,
    runtimeConfig: { a: 1 },
    status: 'online',
    createdAtMs: START_MS,
    queueDepth: 0,
    running: 0,
  }
  assert.deepEqual(await seen(id), plain)
  const storeOnly = { ...STORE_ONLY, parentId: id, permission: 'ask', team: 'red' } as const
  const config = { ...CONFIG, runtime: 'external', model: 'large', maxConcurrentTasks: 1 }
  const child = await add(2, { config, storeOnly, checked: { ok: false, reason: 'broken' } })
  assert.deepEqual(await seen(child), {
    ...plain,
    id: child,
    runtime: 'external',
    model: 'large',
    maxConcurrentTasks: 1,
    status: 'failed',
    statusReason: 'broken',
    parentId: id,
    permission: 'ask',
    team: 'red',
  })
  assert.deepEqual(await run('select hosted, slots from workspace_load order by workspace_id'), [
    { hosted: 1, slots: 3 },
    { hosted: 0, slots: 1 },
  ])
  assert.deepEqual(await read(listTeam), [
    { id, name: 'n', role: 'r', parentId: undefined },
    { id: child, name: 'n', role: 'r', parentId: id },
  ])
})

test('PL-2 a parent must exist', async (t) => {
  const { add, run } = openRows(t)
  await add(1)
  const refused = {
    code: 'invalid_request',
    message: 'parent_id: there is no workspace ws_none',
    details: { path: 'parent_id' },
  }
  await assert.rejects(add(2, { storeOnly: { ...STORE_ONLY, parentId: 'ws_none' } }), refused)
  assert.equal((await run('select id from workspaces')).length, 1)
})

test('TW-11 a team has one workspace of a name; other teams and deleted workspaces do not count', async (t) => {
  const { add, run } = openRows(t)
  const team = (name: string) => ({ storeOnly: { ...STORE_ONLY, team: name } })
  const first = await add(1, team('red'))
  await assert.rejects(add(2, team('red')), {
    code: 'unsupported_operation',
    message: `the team "red" has a workspace of this name already (${first})`,
  })
  await add(3, { ...team('red'), config: { ...CONFIG, name: 'other' } })
  await add(4, team('blue'))
  await add(5)
  await run('delete from workspace_load where workspace_id = $1', first)
  await add(6, team('red'))
  assert.equal((await run('select id from workspaces')).length, 5)
})

test('TW-11 a new member of a team leaves a mark on which a second apply waits', async (t) => {
  const { add, run } = openRows(t)
  await add(1, { storeOnly: { ...STORE_ONLY, team: 'red' } })
  assert.deepEqual(await run('select name, at_ms from upkeep_clock'), [{ name: 'team', at_ms: START_MS }])
})

test('RE-7 there are at most 10,000 workspaces', async (t) => {
  const { add, run } = openRows(t)
  await run(`insert into workspace_load (workspace_id, hosted, slots)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 9999)
    select 'ws_' || n, 1, 1 from numbers`)
  await add(1)
  await assert.rejects(add(2), {
    code: 'invalid_request',
    message: 'there are already 10000 workspaces: delete some first',
  })
})

test('PL-3 a changed file changes its workspace alone; what only the store knows stays', async (t) => {
  const { add, write, get, run } = openRows(t)
  const storeOnly = { ...STORE_ONLY, tier: 3, team: 'red', permission: 'bypass' } as const
  const [id, other] = [await add(1, { storeOnly }), await add(2)]
  await write(() => setStatusText(id, 'busy'))
  const [before, otherBefore] = [await get(id), await get(other)]
  const config = { ...CONFIG, name: 'new', role: 'r2', runtime: 'external', maxConcurrentTasks: 7, runtimeConfig: {} }
  await write(() => mirrorConfig(id, { config, configHash: 'h2', checked: { ok: false, reason: 'broken' } }))
  assert.deepEqual(await get(id), {
    ...before,
    name: 'new',
    role: 'r2',
    runtime: 'external',
    maxConcurrentTasks: 7,
    runtimeConfig: {},
    configHash: 'h2',
    status: 'failed',
    statusReason: 'broken',
  })
  assert.deepEqual(await get(other), otherBefore)
  const loads = () => run('select hosted, slots from workspace_load order by workspace_id')
  assert.deepEqual(await loads(), [
    { hosted: 0, slots: 7 },
    { hosted: 1, slots: 3 },
  ])
  await write(() => mirrorConfig(id, { config: CONFIG, configHash: 'h3', checked: { ok: true } }))
  assert.deepEqual((await loads())[0], { hosted: 1, slots: 3 })
  assert.deepEqual(await get(id), { ...before, configHash: 'h3' })
  await write(() => mirrorConfig('ws_none', { config: CONFIG, configHash: 'h', checked: { ok: true } }))
})

test('PL-3 an invalid file is stored as the reason of its workspace alone, with its hash if it could be read', async (t) => {
  const { add, write, get } = openRows(t)
  const [id, other] = [await add(1), await add(2, { configHash: 'other' })]
  const [before, otherBefore] = [await get(id), await get(other)]
  await write(() => recordInvalidConfig(id, 'line 3', undefined))
  assert.deepEqual(await get(id), { ...before, status: 'failed', statusReason: 'line 3' })
  await write(() => recordInvalidConfig(id, 'line 4', 'h2'))
  assert.deepEqual(await get(id), { ...before, configHash: 'h2', status: 'failed', statusReason: 'line 4' })
  assert.deepEqual(await get(other), otherBefore)
  await write(() => recordInvalidConfig('ws_none', 'line 5', 'h3'))
})

test('PL-2 the stored config and the settings of a turn are those of the named workspace, while it exists', async (t) => {
  const { add, read, run } = openRows(t)
  const [id, other] = [await add(1), await add(2, { config: { ...CONFIG, name: 'other', role: 'x' } })]
  const settings = {
    configHash: 'h',
    tier: 2,
    workingDir: '/w',
    maxConcurrentTasks: 3,
    maxAttempts: 4,
    runtimeConfig: { a: 1 },
  }
  assert.deepEqual(await read(() => findStoredConfig(id)), { name: 'n', role: 'r', runtime: 'mock', ...settings })
  await run('update workspaces set token_generation = 5 where id = $1', id)
  const row = await read(() => findSettings(id))
  assert.deepEqual(
    { ...row, settings: JSON.parse(String(row?.settings)) },
    {
      role: 'r',
      runtime: 'mock',
      settings,
      tokenGeneration: 5,
    },
  )
  assert.equal((await read(() => findStoredConfig(other)))?.name, 'other')
  assert.equal((await read(() => findSettings(other)))?.role, 'x')
  await run('delete from workspace_load where workspace_id = $1', id)
  assert.deepEqual([await read(() => findStoredConfig(id)), await read(() => findSettings(id))], [undefined, undefined])
})

test('PL-2 a change of the owner is written to one workspace; null removes a parent or a permission', async (t) => {
  const { add, write, settings } = openRows(t)
  const [top, id] = [await add(1), await add(2)]
  const before = await settings(id)
  await write(() => changeStoreOnlySettings(id, { parentId: top, tier: 3, permission: 'ask', workingDir: '/x' }))
  const changed = { ...before, parentId: top, tier: 3, permission: 'ask', workingDir: '/x' }
  assert.deepEqual([await settings(id), await settings(top)], [changed, before])
  await write(() => changeStoreOnlySettings(id, { permission: null }))
  const { permission: _, ...rest } = changed
  assert.deepEqual(await settings(id), rest)
  await write(() => changeStoreOnlySettings(id, { parentId: null }))
  assert.deepEqual(await settings(id), { ...before, tier: 3, workingDir: '/x' })
  await assert.rejects(
    write(() => changeStoreOnlySettings('ws_none', {})),
    { code: 'not_found', message: 'there is no workspace ws_none' },
  )
})

test('PL-2 a parent that does not exist or lies below the workspace is refused', async (t) => {
  const { add, write, read } = openRows(t)
  const [top, child, leaf] = [await add(1), await add(2), await add(3)]
  const move = (id: string, parentId: string) => write(() => changeStoreOnlySettings(id, { parentId }))
  await assert.rejects(move(top, 'ws_none'), { code: 'invalid_request', details: { path: 'parent_id' } })
  await move(child, top)
  await move(leaf, child)
  for (const below of [top, child, leaf])
    await assert.rejects(move(top, below), {
      code: 'invalid_request',
      message: `parent_id: ${below} is below ${top} itself`,
      details: { path: 'parent_id' },
    })
  await move(leaf, top)
  assert.deepEqual(
    (await read(listTeam)).map(({ parentId }) => parentId),
    [undefined, top, top],
  )
})

test('PL-2 a move below a circle of parents that an earlier version stored is refused', async (t) => {
  const { add, write, run } = openRows(t)
  const [one, two, three] = [await add(1), await add(2), await add(3)]
  for (const [id, parentId] of [
    [one, two],
    [two, one],
  ] as const)
    await run('update workspaces set settings = $2 where id = $1', id, JSON.stringify({ parentId }))
  await assert.rejects(
    write(() => changeStoreOnlySettings(three, { parentId: one })),
    { code: 'invalid_request' },
  )
})

test('TW-8 the status text of a deleted workspace cannot be set', async (t) => {
  const { add, write, settings } = openRows(t)
  const [id, other] = [await add(1), await add(2)]
  await write(() => setStatusText(id, '~'))
  assert.deepEqual((await settings(id)).statusText, { text: '~', atMs: START_MS })
  assert.equal((await settings(other)).statusText, undefined)
  await write(() => markDeleted(id))
  await assert.rejects(
    write(() => setStatusText(id, 'x')),
    { code: 'not_found' },
  )
  await assert.rejects(
    write(() => setStatusText('ws_none', 'x')),
    { code: 'not_found' },
  )
})

test('PL-2 a deletion leaves a tombstone once, revokes the tokens, and removes presence and schedules of that workspace', async (t) => {
  const { add, write, run, insert, clock } = openRows(t)
  const ids = [await add(1), await add(2)]
  for (const id of ids) {
    await insert('presence', { workspace_id: id })
    await insert('schedules', { workspace_id: id })
  }
  clock.advance(5)
  await write(() => markDeleted(ids[0] as string))
  clock.advance(5)
  await write(() => markDeleted(ids[0] as string))
  assert.deepEqual(await run('select deleted_at, token_generation from workspaces order by id'), [
    { deleted_at: START_MS + 5, token_generation: 1 },
    { deleted_at: null, token_generation: 0 },
  ])
  assert.deepEqual(await run('select workspace_id as id from presence union all select workspace_id from schedules'), [
    { id: ids[1] as string },
    { id: ids[1] as string },
  ])
})

test('CL-7 a name finds the oldest 20 workspaces of that name, without deleted ones', async (t) => {
  const { add, read, run } = openRows(t)
  for (let n = 1; n <= 22; n++) await add(n)
  await add(30, { config: { ...CONFIG, name: 'other' } })
  await run('delete from workspace_load where workspace_id = $1', idOf(1))
  const ids = Array.from({ length: 20 }, (_, n) => idOf(n + 2))
  assert.deepEqual(await read(() => findIdsByName('n')), ids)
  assert.deepEqual(await read(() => findIdsByName('other')), [idOf(30)])
})

test('PL-2 a workspace is found by its id, with the last number of its log; others are not found', async (t) => {
  const { add, read, run } = openRows(t)
  const [id, other] = [await add(1), await add(2)]
  await run('update workspace_load set seq = 9 where workspace_id = $1', id)
  const found = await read(() => findNumberedWorkspace(id))
  assert.deepEqual([found?.workspace.id, found?.seq, found?.nowMs], [id, 9, START_MS])
  assert.equal((await read(() => requireWorkspace(other))).id, other)
  assert.equal(await read(() => findWorkspace(idOf(3))), undefined)
  for (const unknown of [idOf(3), 'ws_x', ''])
    await assert.rejects(
      read(() => requireWorkspace(unknown)),
      { code: 'not_found', message: `there is no workspace ${unknown}` },
    )
})
