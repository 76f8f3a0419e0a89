/** The contract of workspaces, run on every engine: what is stored of them, and what lists and cards show of their work. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { workspaceId } from '../../src/ids.ts'
import { readSchedules } from '../../src/views/schedules.ts'
import { createWorkspaceRegistry } from '../../src/workspaces/registry.ts'
import { createSchedules } from '../../src/workspaces/schedules.ts'
import { letterTo } from '../fakes/letters.ts'
import { present } from '../harness/present.ts'
import { createInboxHarness, hasCode } from './inbox/harness.ts'
import type { StoreUnderTest } from './store-contract.ts'
import { openWorkspaces, type WorkspacesUnderTest } from './workspace/under-test.ts'
import { cardTests, workTests } from './workspace/work.ts'

export function workspaceContract(underTest: StoreUnderTest): void {
  describe(`workspaces on ${underTest.name}`, () => {
    const inbox = createInboxHarness(underTest)
    const opened = { check: { ok: true }, inbox } as {
      -readonly [Key in keyof WorkspacesUnderTest]: WorkspacesUnderTest[Key]
    }
    let folder: string
    before(async () => {
      await inbox.open()
      folder = await mkdtemp(join(tmpdir(), 'molecule-workspaces-'))
      Object.assign(
        opened,
        openWorkspaces(inbox, folder, async () => opened.check),
      )
    })
    after(async () => {
      await inbox.close()
      await rm(folder, { recursive: true })
    })
    settingsTests(opened)
    treeTests(opened)
    presenceTests(opened)
    workTests(opened)
    cardTests(opened)
  })
}

function settingsTests(opened: WorkspacesUnderTest): void {
  test('PL-2 a new workspace is stored with all its settings, and shown so by the lookup and the list', async () => {
    const { make, seen } = opened
    const parentId = await make()
    opened.check = { ok: false, reason: 'broken' }
    const given = { role: 'r', model: 'large', parentId, permission: 'ask', team: 'red', tier: 3 } as const
    const id = await make({ ...given, maxConcurrentTasks: 3, maxAttempts: 7, runtimeConfig: { a: 1 } })
    const {
      createdAtMs,
      configHash: _,
      workingDir,
      ...shown
    } = (await seen(id)) as Awaited<ReturnType<typeof seen>> & {
      configHash: string
    }
    opened.check = { ok: true }
    assert.ok(createdAtMs > 0 && workingDir.startsWith('/'))
    const runtimeConfig = { a: 1, max_attempts: 7, max_concurrent_tasks: 3 }
    const limits = { maxConcurrentTasks: 3, maxAttempts: 7, runtimeConfig, queueDepth: 0, running: 0 }
    assert.deepEqual(present(shown), {
      ...given,
      ...limits,
      id,
      name: 'n',
      runtime: 'mock',
      status: 'failed',
      statusReason: 'broken',
    })
  })

  test('PL-3 a changed file changes its workspace alone; an invalid one is the reason of its workspace until it is mended', async () => {
    const { make, seen, homes } = opened
    const [id, other] = [await make({ team: 'blue', permission: 'bypass' }), await make()]
    const otherBefore = await seen(other)
    const write = async (text: string) => {
      await writeFile(homes.configPath(id), text)
      await nextTurn()
    }
    await write('name: changed\nruntime: external\nruntime_config:\n  max_concurrent_tasks: 7\n')
    const changed = await seen(id)
    assert.deepEqual(
      [changed.name, changed.runtime, changed.maxConcurrentTasks, changed.team, changed.permission, changed.status],
      ['changed', 'external', 7, 'blue', 'bypass', 'offline'],
    )
    await write('name: [\n')
    const invalid = await seen(id)
    assert.deepEqual([invalid.name, invalid.status], ['changed', 'failed'])
    assert.match(invalid.statusReason ?? '', /config\.yaml:\d+: /)
    await write('name: mended\nruntime: mock\n')
    assert.deepEqual([(await seen(id)).name, (await seen(id)).status], ['mended', 'online'])
    assert.deepEqual(await seen(other), otherBefore)
  })

  test('CL-7 a name finds the oldest 20 workspaces of that name, without deleted ones', async () => {
    const { make, lifecycle, workspaces } = opened
    const ids: string[] = []
    for (let n = 0; n < 22; n++) ids.push(await make({ name: 'common' }))
    await lifecycle.remove(ids[0] ?? '', { cascade: false })
    assert.deepEqual(await workspaces.idsNamed('common'), ids.slice(1, 21))
  })

  test('PL-23 a list has pages, which also end at 1 MiB of settings, roles and reports', async () => {
    const { make, workspaces, registry } = opened
    const large = 'x'.repeat(250_000)
    const ids: string[] = []
    const config = { runtimeConfig: { large } }
    for (const input of [{}, config, config, { runtime: 'external' }, config, {}, {}]) ids.push(await make(input))
    await registry.heartbeat(ids[3] ?? '', { current_task: large })
    await registry.heartbeat(ids[5] ?? '', { current_task: large })
    const page = async (from: string | undefined, limit: number) => {
      const found = await workspaces.list({ after: from ?? '', limit })
      return [found.workspaces.map(({ id }) => id), found.next]
    }
    assert.deepEqual(await page(ids[0], 9), [ids.slice(1, 5), ids[4]])
    assert.deepEqual(await page(ids[4], 9), [ids.slice(5), undefined])
    assert.deepEqual(await page(ids[3], 1), [ids.slice(4, 5), ids[4]])
  })

  test('RE-7 there are at most 10,000 workspaces', async () => {
    const { make, inbox } = opened
    await inbox.sql(`insert into workspace_load (workspace_id, hosted, slots)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 10000)
      select 'full_' || n, 1, 1 from numbers`)
    const refused = { code: 'invalid_request', message: 'there are already 10000 workspaces: delete some first' }
    await assert.rejects(make(), refused)
    await inbox.sql(`delete from workspace_load where workspace_id like 'full%'`)
    await make()
  })
}

function treeTests(opened: WorkspacesUnderTest): void {
  test('PL-2 a parent must exist, and must not lie below the workspace itself', async () => {
    const { make, lifecycle, seen } = opened
    await assert.rejects(make({ parentId: 'ws_none' }), hasCode('invalid_request'))
    const top = await make()
    const child = await make({ parentId: top })
    const leaf = await make({ parentId: child })
    for (const parentId of [top, child, leaf])
      await assert.rejects(lifecycle.change(top, { parentId }), {
        code: 'invalid_request',
        message: `parent_id: ${parentId} is below ${top} itself`,
      })
    await lifecycle.change(leaf, { parentId: top, permission: 'ask' })
    assert.deepEqual([(await seen(leaf)).parentId, (await seen(leaf)).permission], [top, 'ask'])
    const alone = await lifecycle.change(leaf, { parentId: null, permission: null })
    assert.deepEqual([alone.parentId, alone.permission, (await seen(child)).parentId], [undefined, undefined, top])
  })

  test('PL-2 a move below a circle of parents that an earlier version stored is refused', async () => {
    const { make, lifecycle, inbox } = opened
    const one = await make()
    const two = await make({ parentId: one })
    const circle = `update workspaces set settings = replace(settings, '"tier":2', $2) where id = $1`
    await inbox.sql(circle, one, `"tier":2,"parentId":"${two}"`)
    await assert.rejects(lifecycle.change(await make(), { parentId: one }), hasCode('invalid_request'))
  })

  test('TW-11 a team has one workspace of a name; other teams and deleted workspaces do not count', async () => {
    const { make, lifecycle } = opened
    const first = await make({ team: 'green' })
    await assert.rejects(make({ team: 'green' }), {
      code: 'unsupported_operation',
      message: `the team "green" has a workspace of this name already (${first})`,
    })
    for (const input of [{ team: 'green', name: 'other' }, { team: 'yellow' }, {}]) await make(input)
    await lifecycle.remove(first, { cascade: false })
    await make({ team: 'green' })
  })

  test('PL-2 a deleted workspace is gone with its queue, its presence and its schedules, and no other is', async () => {
    const { make, lifecycle, registry, workspaces, inbox } = opened
    const [id, other] = [await make(), await make()]
    const schedules = createSchedules({ store: inbox.store, nowMs: Date.now })
    const draft = { name: 's', cron: '0 * * * *', timeZone: 'UTC', text: 'go', missed: 'once' } as const
    for (const each of [id, other]) {
      await schedules.create({ ...draft, workspaceId: each, sameConversation: false })
      await registry.heartbeat(each, {})
    }
    const { taskId } = await inbox.local.reception.admit(letterTo(id))
    assert.deepEqual(await lifecycle.remove(id, { cascade: false }), [id])
    const task = await inbox.local.reception.task(taskId)
    assert.equal(task?.status.message?.parts[0]?.text, 'the workspace was deleted')
    assert.deepEqual([await workspaces.get(id), (await workspaces.get(other))?.id], [undefined, other])
    const { schedules: left } = await readSchedules(inbox.store, {}, { seesWebhooks: false })
    assert.deepEqual(
      left.map((schedule) => schedule.workspace_id).filter((each) => each === id || each === other),
      [other],
    )
    await assert.rejects(lifecycle.remove(id, { cascade: false }), hasCode('not_found'))
  })
}

function presenceTests(opened: WorkspacesUnderTest): void {
  test('PL-4 registering replaces the report of the process before; a heartbeat merges into it', async () => {
    const { make, registry } = opened
    const [id, other] = [await make({ runtime: 'external' }), await make({ runtime: 'external' })]
    assert.equal((await registry.heartbeat(other, { current_task: 'its own' })).status, 'online')
    await registry.register(id, { current_task: 'a', problem: 'stuck' })
    const merged = await registry.heartbeat(id, { current_task: 'b' })
    assert.deepEqual([merged.status, merged.statusReason, merged.currentTask], ['degraded', 'stuck', 'b'])
    const again = await registry.register(id, {})
    assert.deepEqual([again.status, again.currentTask], ['online', undefined])
    assert.equal((await registry.heartbeat(other, {})).currentTask, 'its own')
  })

  test('PL-4 the last heartbeat of a process takes its workspace offline at once, until the next one', async () => {
    const { make, registry, seen } = opened
    const [id, other] = [await make({ runtime: 'external' }), await make({ runtime: 'external' })]
    assert.deepEqual([(await seen(id)).status, (await seen(id)).statusReason], ['offline', 'it has never connected'])
    for (const each of [id, other]) await registry.register(each, { current_task: 'a' })
    const gone = await registry.heartbeat(id, { runtime_state: 'stopped' })
    assert.deepEqual(
      [gone.status, gone.statusReason, gone.currentTask],
      ['offline', 'its bridge was stopped', undefined],
    )
    assert.equal((await seen(other)).status, 'online')
    assert.equal((await registry.heartbeat(id, {})).status, 'online')
  })

  test('TW-8 a status text is shown until it is removed; an unknown or deleted workspace has none and no heartbeat', async () => {
    const { make, registry, lifecycle } = opened
    const [id, other, deleted] = [await make(), await make(), await make()]
    assert.equal((await registry.setStatusText(id, 'reading')).statusText?.text, 'reading')
    assert.equal((await registry.heartbeat(other, {})).statusText, undefined)
    assert.equal((await registry.setStatusText(id, '')).statusText, undefined)
    await lifecycle.remove(deleted, { cascade: false })
    for (const gone of [workspaceId(), 'ws_x', deleted])
      for (const work of [registry.setStatusText(gone, 'x'), registry.heartbeat(gone, {}), registry.register(gone, {})])
        await assert.rejects(work, hasCode('not_found'))
  })

  test('CN-7 CN-3 one of two bridges stops: the workspace stays online; it works again when its problem is gone', async () => {
    const { make, inbox } = opened
    const id = await make({ runtime: 'external' })
    const connected = new Set([id])
    const working: string[] = []
    const registry = createWorkspaceRegistry(inbox.store, {
      hasBridge: (of) => connected.has(of),
      onWorking: async (of) => void working.push(of),
    })
    const report = (given: object) => registry.heartbeat(id, given)
    await registry.register(id, { problem: 'it failed' })
    await report({ active_tasks: 1 })
    assert.deepEqual(working.splice(0), [id])
    await report({ problem: '' })
    assert.deepEqual(working.splice(0), [id])
    for (const problem of ['', 'it failed again']) await report({ problem })
    assert.equal((await report({ runtime_state: 'stopped' })).status, 'degraded')
    connected.clear()
    assert.equal((await report({ runtime_state: 'stopped' })).status, 'offline')
    assert.deepEqual(working, [])
  })

  test('PL-4 the peers of a workspace are those that it may talk to', async () => {
    const { make, registry } = opened
    const top = await make()
    const ids = [await make({ parentId: top }), await make({ parentId: top })]
    assert.deepEqual(
      (await registry.peers(ids[0] ?? '')).map(({ id }) => id),
      [top, ids[1]],
    )
  })
}
