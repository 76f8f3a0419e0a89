import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { workspaceId } from '../../ids.ts'
import { createHomes, writeAtomically } from './homes.ts'
import { ignoreMissing } from './ignore-missing.ts'
import { defaultWorkingDir, ensureWorkingDir, requireWorkingDir } from './working-dir.ts'

const DAY_MS = 24 * 3600_000
const NOW_MS = 1_700_000_000_000

test('PL-2 the files of a deleted workspace are kept for 7 days and then removed', async (t) => {
  const dataDir = temporaryDir(t)
  const homes = createHomes(dataDir)
  const id = workspaceId()
  await homes.create(id, { runtime: 'claude-code' })
  await homes.writeConfig(id, 'name: a\n')
  await homes.trash(id, NOW_MS)
  assert.equal(homes.stamp(id), undefined)
  await homes.sweepTrash(NOW_MS + 7 * DAY_MS - 1)
  assert.deepEqual(await readdir(join(dataDir, 'trash')), [`${id.replace('ws_', 'ws-')}.${NOW_MS}`])
  await writeFile(join(dataDir, 'trash', 'other-file'), '')
  await homes.sweepTrash(NOW_MS + 7 * DAY_MS)
  assert.deepEqual(await readdir(join(dataDir, 'trash')), ['other-file'])
  await homes.trash(id, NOW_MS)
})

test('PL-3 the stamp changes with the file, is empty without it, and undefined without a folder', async (t) => {
  const homes = createHomes(temporaryDir(t))
  const id = workspaceId()
  assert.equal(homes.stamp(id), undefined)
  await homes.create(id, { runtime: 'claude-code' })
  assert.equal(homes.stamp(id), '')
  await homes.writeConfig(id, 'name: a\n')
  const first = homes.stamp(id)
  assert.equal(homes.stamp(id), first)
  await homes.writeConfig(id, 'name: b\n')
  assert.notEqual(homes.stamp(id), first)
  await rm(homes.configPath(id))
  assert.equal(homes.stamp(id), '')
})

test('only the owner may read the files of a workspace', { skip: process.platform === 'win32' }, async (t) => {
  const homes = createHomes(temporaryDir(t))
  const id = workspaceId()
  await homes.create(id, { runtime: 'claude-code' })
  await homes.writeConfig(id, 'name: a\n')
  assert.equal((await stat(homes.configPath(id))).mode & 0o777, 0o600)
})

const modeOf = (path: string) => lstatSync(path).mode & 0o777

function setUp(t: TestContext) {
  const dataDir = temporaryDir(t)
  const homes = createHomes(dataDir)
  /** Writes files of a template; a text for each path. */
  const addTemplate = (name: string, files: Readonly<Record<string, string>> = {}) => {
    const folder = join(dataDir, 'templates', name)
    mkdirSync(folder, { recursive: true })
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, path, '..'), { recursive: true })
      writeFileSync(join(folder, path), text, { mode: 0o644 })
    }
    return folder
  }
  return { dataDir, homes, addTemplate }
}

test('PL-2 an unknown template is refused with the names of those that there are', async (t) => {
  const { dataDir, homes, addTemplate } = setUp(t)
  const refused = (template: string, choice: string) =>
    assert.rejects(homes.templateConfig(template), {
      code: 'invalid_request',
      details: { path: 'template' },
      message: `there is no template ${JSON.stringify(template)}; ${choice}`,
    })
  await refused('x', `there are no templates in ${join(dataDir, 'templates')}`)
  addTemplate('b')
  await refused('x', 'known: b')
  addTemplate('a')
  addTemplate('.hidden')
  writeFileSync(join(dataDir, 'templates', 'a-file'), '')
  mkdirSync(join(dataDir, 'outside'))
  for (const template of ['x', '../outside', '.hidden', 'a-file', '']) await refused(template, 'known: a, a-file, b')
})

test('PL-2 the config of a template is its config.yaml, if it has one', async (t) => {
  const { homes, addTemplate } = setUp(t)
  const folder = addTemplate('with', { 'config.yaml': 'name: a\n' })
  addTemplate('without')
  assert.deepEqual(await homes.templateConfig('with'), { path: join(folder, 'config.yaml'), text: 'name: a\n' })
  assert.equal((await homes.templateConfig('without')).text, undefined)
})

test('PL-2 a workspace gets the files of its template without links, and only its owner can read the folder and the token', async (t) => {
  const { dataDir, homes, addTemplate } = setUp(t)
  const files = { 'USER.md': 'hi', 'skills/one/a.md': 'a', '.auth-token': 'secret', 'work/start.txt': 'go' }
  const folder = addTemplate('full', files)
  symlinkSync('/etc/passwd', join(folder, 'link'))
  const id = workspaceId()
  await homes.create(id, { template: 'full', runtime: 'exec' })
  const home = join(dataDir, 'workspaces', id.replace('ws_', 'ws-'))
  assert.equal(homes.path(id), home)
  for (const [path, text] of Object.entries(files)) assert.equal(readFileSync(join(home, path), 'utf8'), text)
  assert.equal(existsSync(join(home, 'link')), false)
  if (process.platform !== 'win32') assert.equal(modeOf(join(home, '.auth-token')), 0o600)
})

test('PL-2 a workspace without a template has a working folder and the token of the default template', async (t) => {
  const { homes, addTemplate } = setUp(t)
  const [first, second] = [workspaceId(), workspaceId()]
  await homes.create(first, { runtime: 'claude-code' })
  assert.deepEqual(readdirSync(homes.path(first)), ['work'])
  addTemplate('claude-code-default', { '.auth-token': 'secret', 'USER.md': 'not copied' })
  await homes.create(second, { runtime: 'claude-code' })
  assert.deepEqual(readdirSync(homes.path(second)).sort(), ['.auth-token', 'work'])
  assert.equal(readFileSync(join(homes.path(second), '.auth-token'), 'utf8'), 'secret')
  if (process.platform === 'win32') return
  const paths = [homes.path(second), join(homes.path(second), 'work'), join(homes.path(second), '.auth-token')]
  assert.deepEqual(paths.map(modeOf), [0o700, 0o700, 0o600])
})

test('PL-2 a folder is discarded with its files, and a missing one is no error', async (t) => {
  const { homes } = setUp(t)
  const id = workspaceId()
  await homes.create(id, { runtime: 'claude-code' })
  await homes.discard(id)
  assert.equal(existsSync(homes.path(id)), false)
  await homes.discard(id)
})

test('PL-2 several workspaces go to one trash, which only the owner can read', async (t) => {
  const { dataDir, homes } = setUp(t)
  await homes.sweepTrash(0)
  for (const nowMs of [1, 2]) {
    const id = workspaceId()
    await homes.create(id, { runtime: 'claude-code' })
    await homes.trash(id, nowMs)
    await homes.trash(id, nowMs)
  }
  assert.equal(readdirSync(join(dataDir, 'trash')).length, 2)
  if (process.platform !== 'win32') assert.equal(modeOf(join(dataDir, 'trash')), 0o700)
})

test('a file that cannot be replaced keeps its content, and no half file is left', async (t) => {
  const folder = temporaryDir(t)
  mkdirSync(join(folder, 'taken', 'inside'), { recursive: true })
  await assert.rejects(writeAtomically(join(folder, 'taken'), 'x'))
  assert.deepEqual(readdirSync(folder), ['taken'])
  await assert.rejects(writeAtomically(join(folder, 'missing', 'file'), 'x'), { code: 'ENOENT', syscall: 'open' })
})

test('only a missing file is ignored', async () => {
  const failing = (code: string) => ignoreMissing(Promise.reject(Object.assign(new Error(code), { code })))
  assert.equal(await failing('ENOENT'), undefined)
  await assert.rejects(failing('EACCES'), { code: 'EACCES' })
  assert.equal(await ignoreMissing(Promise.resolve(7)), 7)
})

test('PL-2 a working folder that a caller sets must be an absolute path of a folder', (t) => {
  const folder = temporaryDir(t)
  const file = join(folder, 'file')
  writeFileSync(file, '')
  requireWorkingDir(folder)
  const refused = (path: string, message: string) =>
    assert.throws(() => requireWorkingDir(path), {
      code: 'invalid_request',
      message: `working_dir: ${message}`,
      details: { path: 'working_dir' },
    })
  refused('work', '"work" is not an absolute path')
  refused(`${folder}\0`, `${JSON.stringify(`${folder}\0`)} is not an absolute path`)
  refused(join(folder, 'none'), `there is no folder ${join(folder, 'none')}`)
  refused(file, `${file} is not a folder`)
  symlinkSync(join(folder, 'loop'), join(folder, 'loop'))
  refused(join(folder, 'loop'), `${join(folder, 'loop')} cannot be read (ELOOP)`)
})

test('PL-2 before a turn the default working folder is made, with those above it; any other must exist', async (t) => {
  const { homes } = setUp(t)
  const fallback = defaultWorkingDir(homes, workspaceId())
  await ensureWorkingDir(fallback, fallback)
  await ensureWorkingDir(fallback, fallback)
  assert.equal(lstatSync(fallback).isDirectory(), true)
  if (process.platform !== 'win32') assert.equal(modeOf(fallback), 0o700)
  rmSync(fallback, { recursive: true })
  await assert.rejects(ensureWorkingDir(fallback, '/another'), {
    code: 'bad_config',
    message: `working_dir: there is no folder ${fallback}`,
    details: { path: 'working_dir' },
  })
  assert.equal(existsSync(fallback), false)
})
