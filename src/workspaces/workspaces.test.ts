import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { present } from '../../test/harness/present.ts'
import { START_MS } from '../../test/harness/stores/sqlite-store.ts'
import { openTestWorkspaces } from '../../test/harness/stores/workspaces.ts'
import { MoleculeError } from '../errors.ts'
import type { BackendCheck } from './workspace.ts'
import { createWorkspaces } from './workspaces.ts'

function openWorkspaces(t: TestContext) {
  const answer: { check: BackendCheck } = { check: { ok: true } }
  const opened = openTestWorkspaces(t, async () => answer.check)
  const { folder } = opened
  const addTemplate = (name: string, config: string) => {
    mkdirSync(join(folder, 'templates', name), { recursive: true })
    writeFileSync(join(folder, 'templates', name, 'config.yaml'), config)
  }
  const folders = () => (existsSync(join(folder, 'workspaces')) ? readdirSync(join(folder, 'workspaces')) : [])
  return { ...opened, answer, addTemplate, folders }
}

test('PL-2 a workspace of which only the name is given gets the defaults, a folder and a config', async (t) => {
  const { workspaces, homes } = openWorkspaces(t)
  const created = await workspaces.create({ name: 'n' })
  const { id, configHash } = created as typeof created & { configHash: string }
  const { warnings, ...workspace } = created
  assert.deepEqual(present(created), {
    id,
    name: 'n',
    role: '',
    runtime: 'claude-code',
    tier: 2,
    workingDir: join(homes.path(id), 'work'),
    maxConcurrentTasks: 1,
    maxAttempts: 4,
    runtimeConfig: {},
    configHash,
    status: 'online',
    createdAtMs: START_MS,
    queueDepth: 0,
    running: 0,
    warnings: [],
  })
  assert.equal(readFileSync(homes.configPath(id), 'utf8').includes('runtime: claude-code'), true)
  assert.deepEqual(await workspaces.get(id), workspace)
  assert.deepEqual(warnings, [])
})

test('PL-2 the warnings of the backend are passed on, and a backend that cannot run makes the workspace failed', async (t) => {
  const { workspaces, answer } = openWorkspaces(t)
  answer.check = { ok: false, reason: 'no program', warnings: ['model has no effect'] }
  const { status, statusReason, warnings } = await workspaces.create({ name: 'n', runtime: 'mock' })
  assert.deepEqual([status, statusReason, warnings], ['failed', 'no program', ['model has no effect']])
})

test('PL-2 a template gives what the caller leaves out', async (t) => {
  const { workspaces, addTemplate, folder } = openWorkspaces(t)
  addTemplate('mine', `# mine\nname: t\nrole: from the template\nruntime: exec\nworking_dir: ${folder}\n`)
  const plain = await workspaces.create({ name: 'n', template: 'mine' })
  assert.deepEqual(
    [plain.name, plain.role, plain.runtime, plain.model, plain.workingDir],
    [...['n', 'from the template', 'exec', undefined, folder]],
  )
  const own = { name: 'o', role: 'own', runtime: 'mock', model: 'large', workingDir: join(folder, 'templates') }
  const given = await workspaces.create({ ...own, template: 'mine' })
  assert.deepEqual([given.name, given.role, given.runtime, given.model, given.workingDir], Object.values(own))
  await assert.rejects(workspaces.create({ name: 'n', template: 'none' }), { code: 'invalid_request' })
})

test('CL-7 a second workspace of a name is a surprise: a warning names the others', async (t) => {
  const { workspaces } = openWorkspaces(t)
  const first = await workspaces.create({ name: 'n' })
  const second = await workspaces.create({ name: 'n' })
  assert.deepEqual(
    [first.warnings, second.warnings],
    [[], [`another workspace is called "n" (${first.id}); commands and URLs then need the id`]],
  )
  const third = await workspaces.create({ name: 'n' })
  assert.deepEqual(third.warnings, [
    `2 other workspaces are called "n" (${first.id}, ${second.id}); commands and URLs then need the id`,
  ])
  assert.deepEqual(await workspaces.idsNamed('n'), [first.id, second.id, third.id])
})

test('PL-2 a workspace that is refused leaves no folder', async (t) => {
  const { workspaces, folders } = openWorkspaces(t)
  const refused = { code: 'invalid_request' }
  await assert.rejects(workspaces.create({ name: 'n', parentId: 'ws_none' }), refused)
  await assert.rejects(workspaces.create({ name: '' }), refused)
  await assert.rejects(workspaces.create({ name: 'n', workingDir: '/does/not/exist' }), {
    code: 'invalid_request',
    message: 'working_dir: there is no folder /does/not/exist',
  })
  assert.deepEqual([folders(), await workspaces.all()], [[], []])
})

test('PL-2 a checked workspace is refused like a created one, and is not made', async (t) => {
  const { workspaces, folders, answer } = openWorkspaces(t)
  answer.check = { ok: false, reason: 'no program' }
  assert.deepEqual(await workspaces.check({ name: 'n' }), answer.check)
  await assert.rejects(workspaces.check({ name: 'n', parentId: 'ws_none' }), {
    message: 'parent_id: there is no workspace ws_none',
  })
  await assert.rejects(workspaces.check({ name: 'n', workingDir: '/does/not/exist' }), { code: 'invalid_request' })
  assert.deepEqual([folders(), await workspaces.all()], [[], []])
})

test('PL-3 a changed or invalid file shows in the workspace and in the list', async (t) => {
  const { workspaces, homes, clock } = openWorkspaces(t)
  const { id } = await workspaces.create({ name: 'n' })
  /** A file is looked at once in each turn of the event loop. */
  const write = async (text: string) => {
    writeFileSync(homes.configPath(id), text)
    await clock.settle()
  }
  const nameOf = async () => [(await workspaces.get(id))?.name, (await workspaces.all())[0]?.name]
  await write('name: from the file\n')
  assert.deepEqual(await nameOf(), ['from the file', 'from the file'])
  await write('name: listed first, of another length\n')
  assert.equal((await workspaces.list({ limit: 10 })).workspaces[0]?.name, 'listed first, of another length')
  await write('name: [\n')
  const invalid = await workspaces.get(id)
  assert.deepEqual([invalid?.name, invalid?.status], ['listed first, of another length', 'failed'])
  assert.equal((await workspaces.all())[0]?.status, 'failed')
})

test('RE-3 a workspace is not shown with old settings while the store fails', async (t) => {
  const { store, homes, configs } = openWorkspaces(t)
  const refresh = () => Promise.reject(new MoleculeError('store_unavailable', 'the store is away'))
  const workspaces = createWorkspaces({ store, homes, configs: { ...configs, refresh } })
  const { id } = await workspaces.create({ name: 'n' })
  await assert.rejects(workspaces.get(id), { code: 'store_unavailable' })
  await assert.rejects(workspaces.list({ limit: 1 }), { code: 'store_unavailable' })
})

test('PL-2 an unknown or malformed id is no workspace, and no path', async (t) => {
  const { workspaces } = openWorkspaces(t)
  const ids = ['ws_00000000000000000000000000', '../etc', '']
  assert.deepEqual(await Promise.all(ids.map(workspaces.get)), [undefined, undefined, undefined])
})

test('PL-18 a workspace that an earlier version stored with tier 1 does not run without its sandbox', async (t) => {
  const { configs, workspaces } = openTestWorkspaces(t)
  const { id } = await workspaces.create({ name: 'n', runtime: 'mock', tier: 1 })
  await assert.rejects(configs.refresh(id), { code: 'bad_config' })
  const stored = await workspaces.get(id)
  assert.equal(stored?.status, 'failed')
  assert.match(
    stored?.statusReason ?? '',
    /^tier 1 means a sandbox, and this version has none\..*PATCH \/workspaces\/ws_/,
  )
})
