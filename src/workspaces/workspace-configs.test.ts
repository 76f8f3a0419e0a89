import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { systemClock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { silentLog } from '../log.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { type Store, sql } from '../store/store.ts'
import { createHomes, type Homes } from './homes/homes.ts'
import type { BackendCheck } from './workspace.ts'
import {
  badConfigAsInvalidRequest,
  type ConfigNote,
  configTextOf,
  createWorkspaceConfigs,
  runtimeConfigOf,
} from './workspace-configs.ts'
import { findWorkspace } from './workspace-rows.ts'
import { createWorkspaces } from './workspaces.ts'

const OUTSIDE = 'config.yaml was changed on the disk, not through the API'
const away = () => new MoleculeError('store_unavailable', 'away', { retryable: true })

/** Workspaces of a real store and folder. `check` is the check of a backend by its command. */
function setUp(t: TestContext) {
  const folder = temporaryDir(t)
  const store = openSqlite({ path: join(folder, 'm.db'), clock: systemClock })
  t.after(() => store.close())
  const seen = { notes: [] as [string, ConfigNote][], checked: [] as string[], warned: [] as string[] }
  const fakes = {
    check: async (_command: string): Promise<BackendCheck> => ({ ok: true }),
    isDown: false,
    onWritten: async (_id: string): Promise<void> => undefined,
  }
  const read: Store['read'] = (transaction) => (fakes.isDown ? Promise.reject(away()) : store.read(transaction))
  const plainHomes = createHomes(folder)
  const homes: Homes = {
    ...plainHomes,
    async writeConfig(id, text) {
      await plainHomes.writeConfig(id, text)
      await fakes.onWritten(id)
    },
  }
  const configs = createWorkspaceConfigs({
    store: { ...store, read },
    homes,
    log: { ...silentLog, warn: (_fields, message) => void seen.warned.push(message) },
    async check(_runtime, { cmd = '' }) {
      seen.checked.push(cmd)
      return await fakes.check(cmd)
    },
    addNote: async (id, note) => void seen.notes.push([id, note]),
  })
  const workspaces = createWorkspaces({ store, homes, configs })
  /** A new workspace whose config is known. */
  const create = async (cmd = 'cat') => {
    const { id } = await workspaces.create({ name: 'w', runtime: 'exec', runtimeConfig: { cmd } })
    await refresh(id)
    seen.checked.length = 0
    return id
  }
  const write = (id: string, text: string) => writeFileSync(homes.configPath(id), text)
  /** In a new turn of the event loop, because one turn reads the stamp of a file once. */
  const refresh = async (id: string) => {
    await nextTick()
    await configs.refresh(id)
  }
  const save = async (id: string, text: string) => {
    await nextTick()
    await configs.save(id, text, await configs.validate(text, 'config.yaml', undefined))
  }
  /** Not through `workspaces`, which would read the file first. */
  const stored = (id: string) => store.read(() => findWorkspace(id))
  const texts = () => seen.notes.splice(0).map(([, { text }]) => text)
  return { store, homes, configs, workspaces, fakes, seen, create, write, refresh, save, stored, texts }
}

const textOf = (cmd: string, more = '') => `name: w\nruntime: exec\nruntime_config:\n  cmd: ${cmd}\n${more}`

test('PL-3 a change on the disk is mirrored and noted once, with its keys', async (t) => {
  const { stored, seen, create, write, refresh } = setUp(t)
  const id = await create()
  write(id, textOf('dog').replace('name: w', 'name: other'))
  await refresh(id)
  await refresh(id)
  const text = `${OUTSIDE}: changed name, runtime_config.cmd`
  assert.deepEqual(seen.notes, [[id, { type: 'config_changed', text, by: 'platform' }]])
  const workspace = await stored(id)
  assert.deepEqual([workspace?.name, workspace?.runtimeConfig['cmd'], seen.checked], ['other', 'dog', ['dog']])
})

test('PL-3 a file that is read again unchanged leaves no note, and neither does the first hash of a workspace', async (t) => {
  const { store, configs, seen, create, write, refresh, texts } = setUp(t)
  const id = await create()
  await configs.recheck(id)
  assert.deepEqual([texts(), seen.checked], [[], ['cat']])
  // As an earlier version stored it.
  await store.write(() =>
    sql(`update workspaces set settings = json_remove(settings, '$.configHash') where id = $1`, [id]),
  )
  write(id, textOf('dog'))
  await refresh(id)
  assert.deepEqual(texts(), [])
  write(id, textOf('bird'))
  await refresh(id)
  assert.equal(texts().length, 1)
})

test('PL-3 an invalid file fails its workspace with the line and is noted once; a valid one brings it back', async (t) => {
  const { homes, stored, create, write, refresh, texts } = setUp(t)
  const id = await create()
  write(id, 'name: w\nruntime: [\n')
  const error = { code: 'bad_config', message: new RegExp(`^${homes.configPath(id)}:[23]: `) }
  await assert.rejects(refresh(id), error)
  await assert.rejects(refresh(id), error)
  const failed = await stored(id)
  assert.deepEqual([failed?.status, failed?.runtimeConfig['cmd']], ['failed', 'cat'])
  assert.match(failed?.statusReason ?? '', /config\.yaml:[23]: /)
  write(id, textOf('dog'))
  await refresh(id)
  assert.equal((await stored(id))?.status, 'online')
  const [first, second, ...others] = texts()
  assert.equal(first, `${OUTSIDE}: it is invalid now`)
  assert.deepEqual([second?.startsWith(`${OUTSIDE}: changed runtime_config.cmd`), others], [true, []])
})

test('PL-3 a removed file is written again from the store, with one note', async (t) => {
  const { homes, create, write, refresh, texts } = setUp(t)
  const id = await create()
  write(id, textOf('dog', '# a comment\n'))
  await refresh(id)
  texts()
  rmSync(homes.configPath(id))
  await refresh(id)
  assert.equal(
    readFileSync(homes.configPath(id), 'utf8'),
    'name: w\nrole: ""\nruntime: exec\nruntime_config:\n  max_attempts: 4\n  max_concurrent_tasks: 1\n  cmd: dog\n',
  )
  assert.deepEqual(texts(), ['config.yaml was removed from the disk, not through the API: it has been restored'])
  await refresh(id)
  assert.deepEqual(texts(), [])
})

test('PL-3 a config that is saved through the API is mirrored at once and leaves no note, also if it is read meanwhile', async (t) => {
  const { homes, configs, stored, fakes, create, refresh, save, texts } = setUp(t)
  const id = await create()
  fakes.onWritten = async () => {
    await nextTick()
    await configs.refresh(id)
  }
  await save(id, textOf('dog'))
  fakes.onWritten = async () => undefined
  assert.equal((await stored(id))?.runtimeConfig['cmd'], 'dog')
  assert.equal(readFileSync(homes.configPath(id), 'utf8'), textOf('dog'))
  await refresh(id)
  assert.deepEqual(texts(), [])
})

test('PL-3 a problem that was found while a config was saved does not outlast the save', async (t) => {
  const { configs, fakes, create, refresh, save, stored } = setUp(t)
  const id = await create()
  fakes.onWritten = async () => {
    fakes.check = () => Promise.reject(new MoleculeError('bad_config', 'not now'))
    await nextTick()
    await assert.rejects(configs.refresh(id), { code: 'bad_config' })
    fakes.check = async () => ({ ok: true })
  }
  await save(id, textOf('dog'))
  await refresh(id)
  assert.equal((await stored(id))?.status, 'online')
})

test('PL-3 the same text is a change on the disk when it is not the platform that writes it', async (t) => {
  const { create, write, refresh, save, texts } = setUp(t)
  const id = await create()
  await save(id, textOf('dog'))
  for (const cmd of ['bird', 'dog']) {
    write(id, textOf(cmd))
    await refresh(id)
    assert.deepEqual(texts(), [`${OUTSIDE}: changed runtime_config.cmd`], cmd)
  }
})

test('PL-3 a save notes the change on the disk that it covers, and replaces an invalid file', async (t) => {
  const { stored, create, write, save, texts } = setUp(t)
  const id = await create()
  await save(id, textOf('cat'))
  write(id, textOf('bird'))
  await save(id, textOf('dog'))
  assert.deepEqual(texts(), [`${OUTSIDE}: changed runtime_config.cmd`])
  write(id, '[')
  await save(id, textOf('fish'))
  assert.deepEqual(texts(), [`${OUTSIDE}: it is invalid now`])
  const workspace = await stored(id)
  assert.deepEqual([workspace?.status, workspace?.runtimeConfig['cmd']], ['online', 'fish'])
})

test('PL-3 a save during an outage of the store writes no file', async (t) => {
  const { homes, fakes, create, write, save } = setUp(t)
  const id = await create()
  write(id, textOf('bird'))
  fakes.isDown = true
  await assert.rejects(save(id, textOf('dog')), { code: 'store_unavailable' })
  assert.equal(readFileSync(homes.configPath(id), 'utf8'), textOf('bird'))
})

test('PL-3 a workspace whose folder is on another host is saved in the store only', async (t) => {
  const { homes, stored, create, refresh, save } = setUp(t)
  const id = await create()
  rmSync(homes.path(id), { recursive: true })
  await refresh(id)
  await save(id, textOf('dog'))
  assert.equal((await stored(id))?.runtimeConfig['cmd'], 'dog')
  assert.equal(existsSync(homes.path(id)), false)
})

test('PL-3 an outage of the store is no fault of the workspace: it is thrown, and the file is read again', async (t) => {
  const { configs, stored, fakes, seen, create, write, refresh } = setUp(t)
  const id = await create()
  fakes.check = () => Promise.reject(away())
  write(id, textOf('dog'))
  await assert.rejects(refresh(id), { code: 'store_unavailable' })
  assert.equal((await stored(id))?.status, 'online')
  await assert.rejects(configs.recheck(id), { code: 'store_unavailable' })
  fakes.check = async () => ({ ok: true })
  await refresh(id)
  assert.deepEqual(seen.checked.splice(0), ['dog', 'dog', 'dog'])
  fakes.isDown = true
  await assert.rejects(configs.recheck(id), { code: 'store_unavailable' })
  fakes.isDown = false
  await refresh(id)
  assert.deepEqual(seen.checked, ['dog'], 'what the failed recheck wanted to know')
})

test('BK-8 a backend that cannot run fails its workspace with the reason until a recheck finds it', async (t) => {
  const { configs, stored, fakes, seen, create, refresh } = setUp(t)
  const id = await create()
  fakes.check = async () => ({ ok: false, reason: 'cat is not installed' })
  await configs.recheck(id)
  const failed = await stored(id)
  assert.deepEqual([failed?.status, failed?.statusReason], ['failed', 'cat is not installed'])
  assert.deepEqual(seen.warned, ['the backend of a workspace cannot run'])
  await refresh(id)
  fakes.check = async () => ({ ok: true })
  await configs.recheck(id)
  assert.equal((await stored(id))?.status, 'online')
})

test('PL-3 turns that begin at once read a changed file once', async (t) => {
  const { configs, seen, create, write } = setUp(t)
  const id = await create()
  write(id, textOf('dog'))
  await nextTick()
  await Promise.all(Array.from({ length: 5 }, () => configs.refresh(id)))
  assert.deepEqual(seen.checked, ['dog'])
})

test('PL-3 a workspace of an earlier version with tier 1 does not run without its sandbox', async (t) => {
  const { store, configs, stored, create, refresh } = setUp(t)
  const id = await create()
  await store.write(() => sql(`update workspaces set settings = json_set(settings, '$.tier', 1) where id = $1`, [id]))
  await configs.recheck(id)
  await assert.rejects(refresh(id), {
    code: 'bad_config',
    message: new RegExp(`PATCH /workspaces/${id} \\{"tier": 2\\}$`),
  })
  assert.equal((await stored(id))?.status, 'failed')
})

test('BK-8 all workspaces are rechecked, four at a time, and an error of one does not stop the others', async (t) => {
  const { configs, fakes, seen, create } = setUp(t)
  const commands = ['a', 'b', 'c', 'd', 'e', 'f']
  for (const command of commands) await create(command)
  const gate = Promise.withResolvers<void>()
  fakes.check = async (command) => {
    await gate.promise
    if (command === 'b') throw away()
    return { ok: true }
  }
  let isOver = false
  const all = configs.recheckAll(new AbortController().signal).then(() => {
    isOver = true
  })
  await waitUntil(() => seen.checked.length >= 4 || isOver, 'four checks')
  for (let count = 0; count < 20; count++) await nextTick()
  assert.equal(seen.checked.length, 4)
  gate.resolve()
  await all
  assert.deepEqual(seen.checked.toSorted(), commands)
  assert.deepEqual(seen.warned, ['a workspace could not be checked'])
  seen.checked.length = 0
  await configs.recheckAll(AbortSignal.abort())
  assert.deepEqual(seen.checked, [])
})

test('PL-3 options that a backend refuses are shown at their line; other errors are not changed', async (t) => {
  const { configs, fakes, seen } = setUp(t)
  const text = '# mine\nname: w\nruntime: exec\nruntime_config:\n  cmd: cat\n'
  const refusing = (error: Error) => {
    fakes.check = () => Promise.reject(error)
    return configs.validate(text, 'c.yaml', undefined)
  }
  const bad = (details = {}) => new MoleculeError('bad_config', 'it is wrong', { details })
  await assert.rejects(refusing(bad({ key: 'cmd' })), { code: 'bad_config', message: 'c.yaml:5: it is wrong' })
  await assert.rejects(refusing(bad()), { code: 'bad_config', message: 'c.yaml:3: it is wrong' })
  await assert.rejects(refusing(away()), { code: 'store_unavailable', message: 'away' })
  seen.checked.length = 0
  const external = await configs.validate('name: w\nruntime: external\n', 'c.yaml', undefined)
  assert.deepEqual([external.checked, seen.checked], [{ ok: true }, []])
})

test('PL-3 the text of a workspace and the options of a new one have what is set, and no more', async (t) => {
  const { workspaces } = setUp(t)
  const plain = await workspaces.create({ name: 'a', runtime: 'mock' })
  const full = await workspaces.create({ name: 'b', role: 'r', runtime: 'mock', model: 'm', maxAttempts: 2 })
  const options = (attempts: number) => `runtime_config:\n  max_attempts: ${attempts}\n  max_concurrent_tasks: 1\n`
  assert.equal(configTextOf(plain), `name: a\nrole: ""\nruntime: mock\n${options(4)}`)
  assert.equal(configTextOf(full), `name: b\nrole: r\nruntime: mock\nmodel: m\n${options(2)}`)
  assert.deepEqual(runtimeConfigOf({}), {})
  assert.deepEqual(
    runtimeConfigOf({ maxAttempts: 2, maxConcurrentTasks: 3, runtimeConfig: { max_attempts: 9, a: 1 } }),
    {
      max_attempts: 2,
      max_concurrent_tasks: 3,
      a: 1,
    },
  )
})

test('PL-17 a caller who sent no file reads of no line of one; one who sent it gets all problems', async () => {
  const problems = [{ line: 2, column: 1, message: 'wrong' }]
  const bad = new MoleculeError('bad_config', 'config.yaml:2: wrong', {
    details: { source: 'config.yaml:2', problems },
  })
  const failing = (error: Error) => () => Promise.reject(error)
  const common = { code: 'invalid_request', message: 'wrong', cause: bad }
  await assert.rejects(badConfigAsInvalidRequest(failing(bad)), { ...common, details: { source: 'config.yaml:2' } })
  await assert.rejects(badConfigAsInvalidRequest(failing(bad), { sentFile: true }), { ...common, details: bad.details })
  for (const error of [away(), new TypeError('a bug')])
    await assert.rejects(badConfigAsInvalidRequest(failing(error)), (thrown) => thrown === error)
  assert.equal(await badConfigAsInvalidRequest(async () => 7), 7)
})
