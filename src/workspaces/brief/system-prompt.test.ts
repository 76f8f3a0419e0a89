import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openTestWorkspaces } from '../../../test/harness/stores/workspaces.ts'
import { MoleculeError } from '../../errors.ts'
import type { Brief } from '../../protocol/brief.ts'
import type { Store } from '../../store/store.ts'
import type { NewWorkspace } from '../workspace.ts'
import { systemPromptStep } from './system-prompt.ts'

const PLAIN: Brief = { runtime: 'model', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }

/** Workspaces of a real store. `promptOf` reads the prompt; reads of the store fail while `isDown` says so. */
function setUp(t: TestContext) {
  const { store, homes, workspaces } = openTestWorkspaces(t)
  const outage = { isDown: false }
  const read: Store['read'] = (transaction) =>
    outage.isDown ? Promise.reject(new MoleculeError('store_unavailable', 'lost')) : store.read(transaction)
  const make = (brief = PLAIN) => {
    const addPrompt = systemPromptStep({
      store: { ...store, read },
      homes,
      readsPrompt: () => true,
      runsCommands: () => true,
      readsBrief: () => false,
    })
    return (key: { readonly workspaceId: string }) => addPrompt(brief, key)
  }
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

/** A workspace with a folder, and the prompts that its turns get. */
async function setUpFiles(t: TestContext) {
  const { store, homes, workspaces } = openTestWorkspaces(t)
  const { id } = await workspaces.create({ name: 'lead' })
  const make = (brief: Partial<Brief> = {}) => {
    const addPrompt = systemPromptStep({
      store,
      homes,
      readsPrompt: (runtime) => runtime !== 'mock',
      runsCommands: (runtime) => runtime !== 'chat',
      readsBrief: (runtime) => runtime === 'program',
    })
    return (key: { readonly workspaceId: string }) => addPrompt({ ...PLAIN, ...brief }, key)
  }
  const promptOf = async (makeBrief = make(), workspaceId = id) => (await makeBrief({ workspaceId })).systemPrompt
  const path = (name: string) => join(homes.path(id), name)
  const write = (name: string, text: string) => writeFileSync(path(name), text)
  return { id, workspaces, make, promptOf, path, write }
}

test('RT-1 the prompt is the file, the role, the peers and the appended files, in this order', async (t) => {
  const { id, workspaces, make, promptOf, write } = await setUpFiles(t)
  const { id: peer } = await workspaces.create({ name: 'peer', role: ' reviews\n  code ', parentId: id })
  const { id: plain } = await workspaces.create({ name: 'plain', parentId: id })
  const { id: odd } = await workspaces.create({ name: 'odd', role: '~', parentId: id })
  write('MEMORY.md', ' what it knows \n')
  write('USER.md', '~')
  write('IDENTITY.md', 'who it is')
  write('system-prompt.md', 'what it does')
  const files = ['<!-- IDENTITY.md -->\nwho it is', '<!-- USER.md -->\n~', '<!-- MEMORY.md -->\nwhat it knows']
  const peers = [
    'Workspaces that you can ask:',
    ...[`- peer (${peer}): reviews code`, `- plain (${plain})`, `- odd (${odd}): ~`],
  ]
  assert.equal(
    await promptOf(make({ systemPrompt: 'lead the team' })),
    ['what it does', 'Your role: lead the team', peers.join('\n'), ...files].join('\n\n'),
  )
  assert.equal(
    await promptOf(make({ runtime: 'chat', systemPrompt: '~' })),
    ['what it does', 'Your role: ~', ...files].join('\n\n'),
    'an agent that runs no commands cannot ask its peers',
  )
  assert.equal(await promptOf(make({ runtime: 'mock', systemPrompt: 'lead' })), 'lead', 'it has no use for it')
})

test('RT-1 without files, role and peers the prompt is empty; a folder in the place of a file is none', async (t) => {
  const { make, promptOf, path } = await setUpFiles(t)
  for (const name of ['system-prompt.md', 'USER.md']) mkdirSync(path(name))
  assert.equal(await promptOf(), '')
  assert.equal(await promptOf(make({ runtime: 'chat' })), '')
})

test('RT-1 a file that is too long keeps its first characters, and none of them is half a character', async (t) => {
  const { make, promptOf, write } = await setUpFiles(t)
  const chat = make({ runtime: 'chat' })
  write('IDENTITY.md', `a${'é'.repeat(8192)}`)
  const rest = '[The rest is left out: the file is longer than 16 KiB.]'
  assert.equal(await promptOf(chat), `<!-- IDENTITY.md -->\na${'é'.repeat(8191)}\n${rest}`)
  write('IDENTITY.md', `b${'x'.repeat(16 * 1024 - 1)}`)
  assert.equal(await promptOf(chat), `<!-- IDENTITY.md -->\nb${'x'.repeat(16 * 1024 - 1)}`)
})

test('RT-1 a file that cannot be read fails the turn with its name and the reason', async (t) => {
  const { promptOf, path } = await setUpFiles(t)
  symlinkSync(path('USER.md'), path('USER.md'))
  await assert.rejects(promptOf(), { code: 'bad_config', message: 'USER.md of the workspace cannot be read: ELOOP' })
})

test('RT-1 a file is read again when it changed, and not while its time, size and inode are the same', async (t) => {
  const { make, promptOf, path, write } = await setUpFiles(t)
  const chat = make({ runtime: 'chat' })
  const writeAt = (name: string, text: string, seconds: number) => {
    write(name, text)
    utimesSync(path(name), seconds, seconds)
  }
  writeAt('system-prompt.md', 'one', 1000)
  writeAt('IDENTITY.md', 'who', 1000)
  const prompt = (first: string) => `${first}\n\n<!-- IDENTITY.md -->\nwho`
  assert.equal(await promptOf(chat), prompt('one'))
  writeAt('system-prompt.md', 'two', 1000)
  assert.equal(await promptOf(chat), prompt('one'))
  writeAt('system-prompt.md', 'two', 1001)
  assert.equal(await promptOf(chat), prompt('two'))
  writeAt('system-prompt.md', 'three', 1001)
  assert.equal(await promptOf(chat), prompt('three'))
  rmSync(path('IDENTITY.md'))
  assert.equal(await promptOf(chat), 'three')
})

test('RT-1 reading the files leaves none of them open', { skip: process.platform !== 'linux' }, async (t) => {
  const { make, promptOf, write } = await setUpFiles(t)
  const chat = make({ runtime: 'chat' })
  const openFiles = () => readdirSync('/proc/self/fd').length
  write('USER.md', 'x')
  await promptOf(chat)
  const before = openFiles()
  for (let count = 2; count < 40; count++) {
    write('USER.md', 'x'.repeat(count))
    await promptOf(chat)
  }
  assert.ok(openFiles() < before + 20, `${openFiles()} open files, ${before} before`)
})

test('RT-1 thirty peers are all named', async (t) => {
  const { id, workspaces, promptOf } = await setUpFiles(t)
  for (let count = 1; count <= 30; count++) await workspaces.create({ name: `n${count}`, parentId: id })
  const lines = (await promptOf()).split('\n')
  assert.deepEqual([lines.length, lines.at(-1)?.startsWith('- n30 (')], [31, true])
})
