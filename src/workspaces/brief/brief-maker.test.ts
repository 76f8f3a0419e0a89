import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { openTestWorkspaces } from '../../../test/harness/stores/workspaces.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { silentLog } from '../../log.ts'
import { type Store, sql, together, type Value } from '../../store/store.ts'
import { createMemories } from '../memories.ts'
import { keepSession } from '../sessions.ts'
import { createWorkspaceUpkeep } from '../upkeep.ts'
import type { BackendCheck, NewWorkspace } from '../workspace.ts'
import type { WorkspaceConfigs } from '../workspace-configs.ts'
import { type ChildEnvironment, createBriefMaker } from './brief-maker.ts'

const fresh = { failures: 0, losses: 0, interrupted: false, sessionRetried: false }

describe('the brief of a turn, and whether the turn can run', () => {
  /** The result of the backend check for each command. */
  let check: (command: string | undefined) => BackendCheck = () => ({ ok: true })
  const opened = openTestWorkspaces({ after }, async (_runtime, { cmd }) => check(cmd))
  const { folder, store, homes, configs, workspaces } = opened
  const memories = createMemories({ store, find: workspaces.get })
  const brief = (id: string, epoch = 1) =>
    createBriefMaker({ store, host: 'here', homes, configs })({
      workspaceId: id,
      conversationId: 'c',
      messageId: 'm',
      ...fresh,
      epoch,
    })

  test('PL-3 the model of runtime_config wins, paths are relative to the config, and the backend does not get keys of the platform', async () => {
    const runtimeConfig = { cmd: 'cat', timeout: 0, auth_token_file: '.auth-token' }
    const { id } = await workspaces.create({ name: 'a', role: 'r', model: 'large', maxAttempts: 2, runtimeConfig })
    const first = await brief(id)
    assert.deepEqual([first.model, first.maxAttempts, first.systemPrompt], ['large', 2, 'r'])
    const config_dir = homes.path(id)
    const auth_token_file = join(config_dir, '.auth-token')
    assert.deepEqual(first.options, { cmd: 'cat', timeout: 'none', auth_token_file, config_dir })
    await writeFile(
      homes.configPath(id),
      'name: a\nmodel: large\nruntime_config:\n  model: larger\n  max_attempts: 7\n  rate_limit_patience: 2h\n',
    )
    const second = await brief(id)
    assert.deepEqual([second.model, second.maxAttempts, second.options], ['larger', 7, { model: 'larger', config_dir }])
    assert.deepEqual([first.rateLimitPatienceMs, second.rateLimitPatienceMs], [3_600_000, 7_200_000])
  })

  test('RT-5 a later turn of a conversation gets its session while the workspace runs the same backend', async () => {
    const { id } = await workspaces.create({ name: 'a', runtime: 'exec', runtimeConfig: { cmd: 'cat' } })
    const key = { workspaceId: id, conversationId: 'c' }
    await store.write(() => together([keepSession('here', key, 'token-1')]))
    assert.equal((await brief(id, 2)).sessionToken, 'token-1')
    await writeFile(homes.configPath(id), 'name: a\nruntime: mock\n')
    assert.equal((await brief(id, 3)).sessionToken, undefined)
  })

  test('PL-3 a config.yaml that cannot be read fails the turns of its workspace as an invalid one does', async () => {
    const { id } = await workspaces.create({ name: 'unreadable' })
    await rm(homes.configPath(id))
    await mkdir(homes.configPath(id))
    await assert.rejects(brief(id), { code: 'bad_config' })
    assert.equal((await workspaces.get(id))?.status, 'failed')
  })

  test('BK-8 at start, a workspace whose program is gone becomes failed with the reason, and no other does', async () => {
    check = () => ({ ok: true })
    const gone = await workspaces.create({ name: 'gone', runtimeConfig: { cmd: 'gone' } })
    const odd = await workspaces.create({ name: 'odd', runtimeConfig: { cmd: 'odd' } })
    const well = await workspaces.create({ name: 'well', runtimeConfig: { cmd: 'well' } })
    check = (command) => {
      if (command === 'odd') throw new MoleculeError('internal', 'a defect in one check')
      return command === 'gone' ? { ok: false, reason: 'claude is not installed. Install it.' } : { ok: true }
    }
    const upkeep = createWorkspaceUpkeep({ store, homes, configs, memories, clock: systemClock, log: silentLog })
    upkeep.start()
    const status = async (id: string) => (await workspaces.get(id))?.status
    await waitUntil(async () => (await status(gone.id)) === 'failed')
    await upkeep.stop()
    assert.equal((await workspaces.get(gone.id))?.statusReason, 'claude is not installed. Install it.')
    assert.deepEqual([await status(well.id), await status(odd.id)], ['online', 'failed'])
    assert.equal((await workspaces.all()).length > 2, true)
    check = () => ({ ok: true })
    for (const { id } of [gone, odd]) await configs.recheck(id)
    assert.deepEqual([await status(gone.id), await status(odd.id)], ['online', 'online'])
  })

  test('PL-2 files that a crash left of a deleted workspace are moved to the trash', async () => {
    const { id } = await workspaces.create({ name: 'left' })
    await store.write(function* () {
      yield* sql('update workspaces set deleted_at = now_ms() where id = $1', [id])
      yield* sql('delete from workspace_load where workspace_id = $1', [id])
    })
    const upkeep = createWorkspaceUpkeep({ store, homes, configs, memories, clock: systemClock, log: silentLog })
    upkeep.start()
    await waitUntil(() => homes.stamp(id) === undefined)
    await upkeep.stop()
    assert.equal((await readdir(join(folder, 'trash'))).length, 1)
    await assert.rejects(brief(id), /there is no workspace/)
  })
})

const FIRST = { conversationId: 'c', messageId: 'm', epoch: 1, failures: 0, losses: 0 } as const
const FRESH = { ...FIRST, interrupted: false, sessionRetried: false }

/** Briefs of workspaces in a real store; config.yaml is read at creation only. */
function setUp(t: TestContext, childEnvironment?: ChildEnvironment) {
  const { folder, store, homes, configs, workspaces } = openTestWorkspaces(t)
  const seen = { reads: 0 }
  const read: Store['read'] = (transaction) => {
    seen.reads += 1
    return store.read(transaction)
  }
  const unread = { ...configs, refresh: async () => undefined } as WorkspaceConfigs
  const make = createBriefMaker({
    store: { ...store, read },
    host: 'here',
    homes,
    configs: unread,
    ...(childEnvironment !== undefined && { childEnvironment }),
  })
  const create = async (input: Partial<NewWorkspace> = {}) => (await workspaces.create({ name: 'w', ...input })).id
  const write = (text: string, ...values: Value[]) => store.write(() => sql(text, values))
  return { folder, store, homes, make, create, write, seen }
}

test('RT-1 a brief has the settings of the workspace; a first turn costs one query', async (t) => {
  const { homes, make, create, seen } = setUp(t)
  const runtimeConfig = { cmd: 'cat', max_cost_usd_per_day: 5, working_dir: '', rate_limit_patience: '2m' }
  const id = await create({ role: 'r', runtime: 'exec', model: 'large', maxAttempts: 3, runtimeConfig })
  seen.reads = 0
  assert.deepEqual(await make({ ...FRESH, workspaceId: id }), {
    runtime: 'exec',
    options: { cmd: 'cat', config_dir: homes.path(id) },
    systemPrompt: 'r',
    workingDir: join(homes.path(id), 'work'),
    maxAttempts: 3,
    hasMcp: true,
    rateLimitPatienceMs: 120_000,
    env: {},
    model: 'large',
    costUsdPerDayMax: 5,
  })
  assert.equal(seen.reads, 1)
})

test('AG-18 a blank model of runtime_config is none, and the permission of an admin wins over the file', async (t) => {
  const { homes, make, create } = setUp(t)
  const briefOf = async (input: Partial<NewWorkspace>) => make({ ...FRESH, workspaceId: await create(input) })
  assert.equal((await briefOf({ model: 'large', runtimeConfig: { model: ' ' } })).model, 'large')
  assert.equal((await briefOf({ model: 'large', runtimeConfig: { model: ' ~ ' } })).model, '~')
  assert.equal((await briefOf({})).model, undefined)
  const auth_token_file = '/srv/token'
  const { options } = await briefOf({ permission: 'bypass', runtimeConfig: { permission: 'ask', auth_token_file } })
  const { config_dir: home, ...rest } = options
  assert.deepEqual(rest, { permission: 'bypass', auth_token_file })
  assert.equal(home?.startsWith(join(homes.path('x'), '..')), true)
})

test('PL-3 the next turn has each changed setting', async (t) => {
  const { make, create, write } = setUp(t)
  const id = await create({ role: 'before', runtime: 'exec', runtimeConfig: { cmd: 'cat' } })
  const other = await create({ role: 'other', runtime: 'exec', runtimeConfig: { cmd: 'dog' } })
  const known = async (workspaceId = id) => {
    const { systemPrompt, runtime, maxAttempts } = await make({ ...FRESH, workspaceId })
    await new Promise((resolve) => setImmediate(resolve))
    return [systemPrompt, runtime, maxAttempts]
  }
  assert.deepEqual(await known(), ['before', 'exec', 4])
  await write(`update workspaces set role = 'after' where id = $1`, id)
  assert.deepEqual(await known(), ['after', 'exec', 4])
  await write(`update workspaces set runtime = 'mock' where id = $1`, id)
  assert.deepEqual(await known(), ['after', 'mock', 4])
  await write(
    `update workspaces set settings = replace(settings, '"maxAttempts":4', '"maxAttempts":7') where id = $1`,
    id,
  )
  assert.deepEqual(
    [await known(), await known(other)],
    [
      ['after', 'mock', 7],
      ['other', 'exec', 4],
    ],
  )
})

test('RT-12 the environment of a turn is made for its runtime, its generation, and a bridge where there is one', async (t) => {
  const made: unknown[] = []
  const { make, create, write } = setUp(t, (turn, options) => {
    made.push([turn.workspaceId, turn.conversationId, options])
    return { A: 'b' }
  })
  const id = await create({ runtime: 'exec', runtimeConfig: { cmd: 'cat' } })
  await write('update workspaces set token_generation = 3 where id = $1', id)
  const key = { ...FRESH, workspaceId: id }
  assert.deepEqual((await make(key)).env, { A: 'b' })
  assert.equal((await make(key, { host: 'laptop' })).runtime, 'exec')
  assert.equal((await make(key, { host: 'laptop', backend: 'codex' })).runtime, 'codex')
  assert.deepEqual(made, [
    [id, 'c', { runtime: 'exec', tokenGeneration: 3, isForBridge: false }],
    [id, 'c', { runtime: 'exec', tokenGeneration: 3, isForBridge: true }],
    [id, 'c', { runtime: 'codex', tokenGeneration: 3, isForBridge: true }],
  ])
})

test('RT-5 a later turn gets the session of its own host, and an attempt after a failed one the notes', async (t) => {
  const { store, make, create, write } = setUp(t)
  const id = await create({ runtime: 'exec', runtimeConfig: { cmd: 'cat' } })
  const key = { ...FRESH, workspaceId: id }
  await store.write(() => together([keepSession('here', { workspaceId: id, conversationId: 'c' }, 's1')]))
  for (const [message, value] of [
    ['m', 'mine'],
    ['other', 'not mine'],
  ] as const)
    await write(
      `insert into turn_notes (message_id, key, value, task_id, workspace_id) values ($1, 'k', $2, 't', $3)`,
      ...[message, value, id],
    )
  const carried = async (more: object, host?: string) => {
    const { sessionToken, notes } = await make({ ...key, epoch: 2, ...more }, host === undefined ? undefined : { host })
    return [sessionToken, notes]
  }
  assert.deepEqual(await carried({ epoch: 1, failures: 1 }), [undefined, undefined])
  assert.deepEqual(await carried({}), ['s1', undefined])
  assert.deepEqual(await carried({}, 'laptop'), [undefined, undefined])
  const retries = [{ failures: 1 }, { losses: 1 }, { interrupted: true }, { sessionRetried: true }, { parked: {} }]
  for (const more of retries) assert.deepEqual(await carried(more), ['s1', { k: 'mine' }], JSON.stringify(more))
})

test('PL-2 the default working folder is made again where it is missing; another one must exist, except for a bridge', async (t) => {
  const { folder, homes, make, create } = setUp(t)
  const id = await create({ runtime: 'mock' })
  const work = join(homes.path(id), 'work')
  rmSync(work, { recursive: true })
  await make({ ...FRESH, workspaceId: id }, { host: 'laptop' })
  assert.equal(existsSync(work), false, 'the folder of a bridge is not here')
  await make({ ...FRESH, workspaceId: id })
  assert.equal(existsSync(work), true)
  const gone = temporaryDir(t)
  const other = await create({ runtime: 'mock', workingDir: gone })
  rmSync(gone, { recursive: true })
  const key = { ...FRESH, workspaceId: other }
  assert.equal((await make(key, { host: 'laptop' })).workingDir, gone)
  await assert.rejects(make(key), { code: 'bad_config', message: `working_dir: there is no folder ${gone}` })
  assert.ok(existsSync(folder))
})
