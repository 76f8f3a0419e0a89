import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { START_MS } from '../../test/harness/stores/sqlite-store.ts'
import { openTestWorkspaces } from '../../test/harness/stores/workspaces.ts'
import { workspaceId } from '../ids.ts'
import type { WorkspaceQueues } from '../inbox/queues.ts'
import { createWorkspaceLifecycle } from './lifecycle.ts'
import type { BackendCheck, NewWorkspace } from './workspace.ts'

/** A real store and real folders; the queues and the tokens only write down what they are asked. */
function openLifecycle(t: TestContext) {
  const calls: string[] = []
  const note = async (call: string) => {
    calls.push(call)
  }
  const answer: { check: BackendCheck; checkOf?: (options: Readonly<Record<string, string>>) => BackendCheck } = {
    check: { ok: true },
  }
  const check = async (runtime: string, options: Readonly<Record<string, string>>) => {
    calls.push(`check ${runtime}`)
    return answer.checkOf?.(options) ?? answer.check
  }
  const opened = openTestWorkspaces(t, check)
  const { store, clock, homes, configs, workspaces } = opened
  const queues: WorkspaceQueues = {
    pause: (id, { now }) => note(`pause ${id} ${now}`),
    resume: (id) => note(`resume ${id}`),
    limitsChanged: (id) => note(`limits ${id}`),
    retryFailed: (id) => note(`retry failed ${id}`),
    async stop(id) {
      calls.push(`stop ${id}`)
      return ['task 1']
    },
    async end(id, failure) {
      calls.push(`end ${id} ${failure.code}: ${failure.message}`)
      await opened.run('delete from workspace_load where workspace_id = $1', id)
      return 1
    },
  }
  const lifecycle = createWorkspaceLifecycle({
    store,
    homes,
    configs,
    queues,
    clock,
    revokeTokens: (id) => note(`revoke all ${id}`),
    revokeConversations: (id) => note(`revoke conversations ${id}`),
    retireBackend: (id) => calls.push(`retire ${id}`),
    refreshLogin: (id) => note(`look at the log-in ${id}`),
  })
  const make = async (input: Partial<NewWorkspace> = {}) => {
    const { id } = await workspaces.create({ name: 'n', runtime: 'mock', ...input })
    calls.length = 0
    return id
  }
  const configOf = (id: string) => readFileSync(homes.configPath(id), 'utf8')
  return { ...opened, homes, lifecycle, make, calls, answer, configOf, get: workspaces.get }
}

test('PL-2 each setting of the store changes alone; all but the permission without a check of the backend', async (t) => {
  const { lifecycle, make, calls, folder, configOf } = openLifecycle(t)
  const [parent, id] = [await make(), await make()]
  const before = configOf(id)
  assert.equal((await lifecycle.change(id, { parentId: parent })).parentId, parent)
  assert.equal((await lifecycle.change(id, { workingDir: folder })).workingDir, folder)
  const changed = await lifecycle.change(id, { parentId: null })
  assert.deepEqual([changed.parentId, changed.workingDir], [undefined, folder])
  assert.deepEqual(calls, Array(3).fill(`look at the log-in ${id}`))
  assert.equal((await lifecycle.change(id, { permission: 'ask' })).permission, 'ask')
  assert.equal((await lifecycle.change(id, { permission: null })).permission, undefined)
  assert.equal(configOf(id), before)
})

test('PL-18 a change of the tier checks the backend again', async (t) => {
  const { lifecycle, make, calls, answer } = openLifecycle(t)
  const id = await make()
  answer.check = { ok: false, reason: 'the program is gone' }
  const changed = await lifecycle.change(id, { tier: 3 })
  assert.deepEqual([changed.tier, changed.status, changed.statusReason], [3, 'failed', 'the program is gone'])
  assert.deepEqual(calls, ['check mock', `look at the log-in ${id}`])
})

test('PL-3 each setting of config.yaml changes alone, in the file and in the store, and comments stay', async (t) => {
  const { lifecycle, make, homes, configOf } = openLifecycle(t)
  const id = await make()
  writeFileSync(homes.configPath(id), '# mine\nname: n\nruntime: mock\n')
  assert.equal((await lifecycle.change(id, { name: 'new' })).name, 'new')
  assert.equal(configOf(id), '# mine\nname: new\nruntime: mock\n')
  assert.equal((await lifecycle.change(id, { role: 'r' })).role, 'r')
  assert.equal((await lifecycle.change(id, { runtime: 'exec' })).runtime, 'exec')
  assert.equal((await lifecycle.change(id, { model: 'large' })).model, 'large')
  assert.equal(configOf(id), '# mine\nname: new\nruntime: exec\nrole: r\nmodel: large\n')
  assert.equal((await lifecycle.change(id, { model: null })).model, undefined)
  assert.deepEqual((await lifecycle.change(id, { runtimeConfig: { cmd: 'cat' } })).runtimeConfig, { cmd: 'cat' })
  const { maxAttempts, maxConcurrentTasks } = await lifecycle.change(id, { maxAttempts: 2, maxConcurrentTasks: 3 })
  assert.deepEqual([maxAttempts, maxConcurrentTasks], [2, 3])
})

test('PL-2 the config of a workspace of another machine is changed in the store only', async (t) => {
  const { lifecycle, make, homes } = openLifecycle(t)
  const id = await make({ role: 'r' })
  rmSync(homes.path(id), { recursive: true })
  const changed = await lifecycle.change(id, { name: 'new' })
  assert.deepEqual([changed.name, changed.role, existsSync(homes.path(id))], ['new', 'r', false])
})

test('PL-11 a working folder that does not exist is refused, and nothing is changed', async (t) => {
  const { lifecycle, make, get } = openLifecycle(t)
  const id = await make()
  const before = await get(id)
  const change = { workingDir: '/does/not/exist', name: 'new' }
  const refused = { code: 'invalid_request', message: 'working_dir: there is no folder /does/not/exist' }
  await assert.rejects(lifecycle.change(id, change), refused)
  await assert.rejects(lifecycle.checkChange(id, change), refused)
  assert.deepEqual(await get(id), before)
})

test('PL-2 a checked change says whether the backend could run, and changes nothing', async (t) => {
  const { lifecycle, make, get, answer, calls } = openLifecycle(t)
  const id = await make()
  const before = await get(id)
  calls.length = 0
  answer.check = { ok: false, reason: 'there is no exec' }
  assert.deepEqual(await lifecycle.checkChange(id, { runtime: 'exec' }), answer.check)
  assert.deepEqual(calls, ['check exec'])
  await assert.rejects(lifecycle.checkChange(id, { name: '' }), { code: 'invalid_request' })
  await assert.rejects(lifecycle.change(id, { name: '' }), { code: 'invalid_request' })
  assert.deepEqual(await get(id), before)
})

test('PL-2 a workspace is removed with its tokens, its queue, its backend and its files', async (t) => {
  const { lifecycle, make, get, calls, homes, folder, run } = openLifecycle(t)
  const [id, other] = [await make(), await make()]
  calls.length = 0
  assert.deepEqual(await lifecycle.remove(id, { cascade: false }), [id])
  assert.deepEqual(calls, [`revoke all ${id}`, `end ${id} canceled: the workspace was deleted`, `retire ${id}`])
  assert.deepEqual([await get(id), (await get(other))?.id], [undefined, other])
  assert.equal(existsSync(homes.path(id)), false)
  assert.deepEqual(readdirSync(join(folder, 'trash')), [`${id.replace('ws_', 'ws-')}.${START_MS}`])
  assert.deepEqual(await run('select deleted_at from workspaces where id = $1', id), [{ deleted_at: START_MS }])
})

test('PL-2 a workspace with others below it is removed only on request, the deepest first', async (t) => {
  const { lifecycle, make, get, calls } = openLifecycle(t)
  const top = await make()
  const child = await make({ parentId: top })
  const refusal = (count: string, below: number) => ({
    code: 'unsupported_operation',
    message: `${top} has ${count} below it; add cascade=true to delete them too`,
    details: { below },
  })
  await assert.rejects(lifecycle.remove(top, { cascade: false }), refusal('1 workspace', 1))
  const leaf = await make({ parentId: child })
  await assert.rejects(lifecycle.remove(top, { cascade: false }), refusal('2 workspaces', 2))
  const [sibling, other] = [await make({ parentId: top }), await make()]
  calls.length = 0
  const removed = [leaf, child, sibling, top]
  assert.deepEqual(await lifecycle.remove(top, { cascade: true }), removed)
  const revoked = calls.filter((call) => call.startsWith('revoke'))
  assert.deepEqual(
    revoked,
    removed.map((id) => `revoke all ${id}`),
  )
  assert.equal((await get(other))?.id, other)
})

test('PL-2 a restart revokes the tokens of turns, retires the backend and checks it again', async (t) => {
  const { lifecycle, make, calls, answer } = openLifecycle(t)
  const id = await make()
  answer.check = { ok: false, reason: 'the program is gone' }
  const restarted = await lifecycle.restart(id)
  assert.deepEqual([restarted.status, restarted.statusReason], ['failed', 'the program is gone'])
  assert.deepEqual(calls, [...[`revoke conversations ${id}`, `retire ${id}`, 'check mock', `look at the log-in ${id}`]])
})

test('PL-2 pause, stop and resume go to the queue of the workspace', async (t) => {
  const { lifecycle, make, calls } = openLifecycle(t)
  const id = await make()
  const ids = [
    (await lifecycle.pause(id, { now: true })).id,
    (await lifecycle.pause(id, { now: false })).id,
    (await lifecycle.resume(id)).id,
  ]
  assert.deepEqual(ids, [id, id, id])
  const { workspace, canceled } = await lifecycle.stop(id)
  assert.deepEqual([workspace.id, canceled], [id, ['task 1']])
  assert.deepEqual(calls, [`pause ${id} true`, `pause ${id} false`, `resume ${id}`, `stop ${id}`])
})

test('PL-2 nothing is done for a workspace that does not exist', async (t) => {
  const { lifecycle, calls } = openLifecycle(t)
  const id = workspaceId()
  const notFound = { code: 'not_found', message: `there is no workspace ${id}` }
  await assert.rejects(lifecycle.change(id, { name: 'x' }), notFound)
  await assert.rejects(lifecycle.checkChange(id, { name: 'x' }), notFound)
  await assert.rejects(lifecycle.remove(id, { cascade: true }), notFound)
  await assert.rejects(lifecycle.restart(id), notFound)
  await assert.rejects(lifecycle.pause(id, { now: false }), notFound)
  await assert.rejects(lifecycle.stop(id), notFound)
  await assert.rejects(lifecycle.resume(id), notFound)
  assert.deepEqual(calls, [])
})

test('PL-2 a workspace whose agent has no log-in to look at is changed and restarted like any other', async (t) => {
  const { store, homes, configs, clock, make } = openLifecycle(t)
  const id = await make()
  mkdirSync(homes.path(id), { recursive: true })
  const lifecycle = createWorkspaceLifecycle({
    store,
    homes,
    configs,
    clock,
    queues: {} as WorkspaceQueues,
    revokeTokens: async () => undefined,
    revokeConversations: async () => undefined,
    retireBackend: () => undefined,
  })
  assert.equal((await lifecycle.change(id, { permission: 'ask' })).permission, 'ask')
  assert.equal((await lifecycle.restart(id)).status, 'online')
})

test('BK-8 AG-16 the permission that an admin sets is checked with the backend: on creation, by a change and at a recheck', async (t) => {
  const { configs, homes, lifecycle, workspaces, answer, get } = openLifecycle(t)
  const cannot = { ok: false, reason: 'bypass is refused as root' } as const
  answer.checkOf = ({ permission }) => (permission === 'bypass' ? cannot : { ok: true })
  const { id, status, statusReason } = await workspaces.create({ name: 'n', runtime: 'mock', permission: 'bypass' })
  assert.deepEqual([status, statusReason], ['failed', cannot.reason])
  const changed = await lifecycle.change(id, { permission: 'allowed_tools' })
  assert.deepEqual([changed.status, changed.statusReason], ['online', undefined])
  assert.deepEqual(await lifecycle.checkChange(id, { permission: 'bypass' }), cannot)
  assert.equal((await lifecycle.change(id, { permission: 'bypass' })).status, 'failed')
  await configs.recheck(id)
  assert.equal((await get(id))?.status, 'failed')
  assert.deepEqual((await configs.validate(readFileSync(homes.configPath(id), 'utf8'), 'c', 'bypass')).checked, cannot)
  assert.equal((await lifecycle.change(id, { permission: null })).status, 'online')
})
