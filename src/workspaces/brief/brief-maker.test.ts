import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { silentLog } from '../../log.ts'
import { keepSession } from '../../sessions/sessions.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import { type Store, sql, together } from '../../store/store.ts'
import { createWorkspaceConfigs, type WorkspaceConfigs } from '../config/workspace-configs.ts'
import { createHomes, type Homes } from '../homes/homes.ts'
import { createMemories, type Memories } from '../memories.ts'
import { createWorkspaceUpkeep } from '../upkeep.ts'
import type { BackendCheck, Workspaces } from '../workspace.ts'
import { createWorkspaces } from '../workspaces.ts'
import { createBriefMaker } from './brief-maker.ts'

const fresh = { failures: 0, losses: 0, interrupted: false, sessionRetried: false }

describe('the brief of a turn, and whether the turn can run', () => {
  let folder: string
  let store: Store
  let homes: Homes
  let configs: WorkspaceConfigs
  let workspaces: Workspaces
  let memories: Memories
  /** The result of the backend check for each command. */
  let check: (command: string | undefined) => BackendCheck
  const brief = (id: string, epoch = 1) =>
    createBriefMaker({ store, host: 'here', homes, configs })({
      workspaceId: id,
      conversationId: 'c',
      messageId: 'm',
      ...fresh,
      epoch,
    })
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'molecule-brief-'))
    store = openSqlite({ path: join(folder, 'molecule.db'), clock: systemClock })
    homes = createHomes(folder)
    check = () => ({ ok: true })
    const checkCommand = async (_runtime: string, { cmd }: Readonly<Record<string, string>>) => check(cmd)
    configs = createWorkspaceConfigs({ store, homes, log: silentLog, check: checkCommand })
    workspaces = createWorkspaces({ store, homes, configs })
    memories = createMemories({ store, find: workspaces.get })
  })
  after(async () => {
    await store.close()
    await rm(folder, { recursive: true })
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

  test('PL-3 many turns that start at once read a changed config once', async () => {
    const { id } = await workspaces.create({ name: 'a', runtimeConfig: { cmd: 'cat' } })
    await brief(id)
    let checks = 0
    check = () => {
      checks += 1
      return { ok: true }
    }
    await writeFile(homes.configPath(id), 'name: b\nruntime_config:\n  cmd: dog\n')
    const briefs = await Promise.all(Array.from({ length: 20 }, () => brief(id)))
    assert.deepEqual([checks, briefs.every(({ options }) => options['cmd'] === 'dog')], [1, true])
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
