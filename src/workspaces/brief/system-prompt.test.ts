import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { silentLog } from '../../log.ts'
import type { Brief } from '../../protocol/brief.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import type { Store } from '../../store/store.ts'
import { createWorkspaceConfigs } from '../config/workspace-configs.ts'
import { createHomes } from '../homes/homes.ts'
import type { NewWorkspace } from '../workspace.ts'
import { createWorkspaces } from '../workspaces.ts'
import { withSystemPrompt } from './system-prompt.ts'

const PLAIN: Brief = { runtime: 'model', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }

/** Workspaces of a real store. `promptOf` reads the prompt; reads of the store fail while `isDown` says so. */
function setUp(t: TestContext) {
  const folder = temporaryDir(t)
  const store = openSqlite({ path: join(folder, 'm.db'), clock: systemClock })
  t.after(() => store.close())
  const homes = createHomes(folder)
  const configs = createWorkspaceConfigs({ store, homes, log: silentLog, check: async () => ({ ok: true }) })
  const workspaces = createWorkspaces({ store, homes, configs })
  const outage = { isDown: false }
  const read: Store['read'] = (transaction) =>
    outage.isDown ? Promise.reject(new MoleculeError('store_unavailable', 'lost')) : store.read(transaction)
  const make = (brief = PLAIN) =>
    withSystemPrompt(async () => brief, {
      store: { ...store, read },
      homes,
      readsPrompt: () => true,
      runsCommands: () => true,
      readsBrief: () => false,
    })
  const promptOf = async (workspaceId: string, makeBrief = make()) => (await makeBrief({ workspaceId })).systemPrompt
  const create = async (input: NewWorkspace) => (await workspaces.create(input)).id
  const write = (id: string, name: string, text: string) => {
    mkdirSync(homes.path(id), { recursive: true })
    writeFileSync(join(homes.path(id), name), text)
  }
  return { create, write, promptOf, make, outage }
}

test('RT-1 system-prompt.md has up to 32 KiB, each other file up to 16 KiB; the rest is left out', async (t) => {
  const { create, write, promptOf } = setUp(t)
  const id = await create({ name: 'a' })
  const cases = [
    ['system-prompt.md', 32],
    ['IDENTITY.md', 16],
  ] as const
  for (const [name, kib] of cases) {
    const characters = async () => (await promptOf(id)).match(/x/g)?.length
    write(id, name, 'x'.repeat(kib * 1024))
    assert.equal(await characters(), kib * 1024, name)
    assert.doesNotMatch(await promptOf(id), /left out/)
    write(id, name, 'x'.repeat(kib * 1024 + 1))
    assert.equal(await characters(), kib * 1024, name)
    assert.match(await promptOf(id), new RegExp(`longer than ${kib} KiB`))
    write(id, name, '')
  }
})

test('RT-1 the prompt names up to thirty peers with their roles, counts the others, and says nothing without a peer', async (t) => {
  const { create, promptOf } = setUp(t)
  const id = await create({ name: 'lead' })
  assert.equal(await promptOf(id), '')
  await create({ name: 'first', role: `r${'x'.repeat(199)}`, parentId: id })
  assert.match(await promptOf(id), /^Workspaces that you can ask:\n- first \(ws_\w+\): rx{199}$/)
  for (let count = 2; count <= 32; count++) await create({ name: `n${count}`, role: 'x'.repeat(201), parentId: id })
  const lines = (await promptOf(id)).split('\n').slice(1)
  assert.equal(lines.length, 31)
  assert.equal(lines.at(-1), '- and 2 more')
  assert.match(lines[1] ?? '', /: x{200} \.\.\.$/)
})

test('RT-1 the first prompt of a workspace that was made a moment ago names its peers', async (t) => {
  const { create, promptOf, make } = setUp(t)
  const [makeBrief, id] = [make(), await create({ name: 'lead' })]
  assert.equal(await promptOf(id, makeBrief), '')
  const younger = await create({ name: 'younger', parentId: id })
  assert.match(await promptOf(younger, makeBrief), /^Workspaces that you can ask:\n- lead /)
})

test('RT-1 the team is read again after a read that failed', async (t) => {
  const { create, promptOf, make, outage } = setUp(t)
  const id = await create({ name: 'lead' })
  await create({ name: 'peer', parentId: id })
  const makeBrief = make()
  outage.isDown = true
  await assert.rejects(promptOf(id, makeBrief), { code: 'store_unavailable' })
  outage.isDown = false
  assert.match(await promptOf(id, makeBrief), /- peer/)
})
