import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { resolvePath } from './safe-path.ts'

function setUp(t: TestContext) {
  const home = temporaryDir(t)
  const allowed = async (path: string) => assert.equal(await resolvePath(home, path), join(home, path))
  const refused = (path: string, problem: string) =>
    assert.rejects(resolvePath(home, path), {
      code: 'invalid_request',
      details: { path: 'path' },
      message: `the path ${JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path)} ${problem}`,
    })
  return { home, allowed, refused }
}

const NAMES = 'must be plain names with single slashes between them'
const CHARACTERS = 'has a name that not every file system can store'

test('PL-17 a path has plain names: no empty one, no dots, nothing that a file system refuses', async (t) => {
  const { allowed, refused } = setUp(t)
  for (const path of ['a', '~', '.~', '..~', '.auth-token', 'a/b.md', 'skills/Änderung 1.md']) await allowed(path)
  for (const path of ['', '/a', 'a//b', 'a/', '.', 'a/./b', '..', '../a', 'a/../b']) await refused(path, NAMES)
  for (const path of ['a\\b', 'a:b', 'a\0', 'a\u202eb', 'a ', 'b./c', 'a*']) await refused(path, CHARACTERS)
})

test('PL-17 the working folder is not served, whatever its case; a folder of that name elsewhere is', async (t) => {
  const { allowed, refused } = setUp(t)
  for (const path of ['work', 'work/a', 'WORK/a'])
    await refused(path, 'is in the working folder, which is not served here')
  await allowed('a/work')
})

test('PL-17 a path has at most 1024 bytes, 16 names, and 255 bytes in each name', async (t) => {
  const { allowed, refused } = setUp(t)
  await allowed('é'.repeat(127) + 'x')
  await refused('é'.repeat(128), 'has a name longer than 255 bytes')
  await allowed(Array(16).fill('a').join('/'))
  await refused(Array(17).fill('a').join('/'), 'is deeper than 16 folders')
  const longest = Array(5).fill('x'.repeat(204)).join('/')
  await allowed(longest)
  await refused(`y${longest}`, 'is longer than 1024 bytes')
})

test('an error shows 100 characters of the path', async (t) => {
  const { refused } = setUp(t)
  for (const count of [11, 99, 100, 101]) await refused(`a${'x'.repeat(count - 2)}*`, CHARACTERS)
})

test('PL-17 no folder on the way is a link or a file, and the end is a file or nothing', async (t) => {
  const { home, allowed, refused } = setUp(t)
  mkdirSync(join(home, 'folder', 'inner'), { recursive: true })
  writeFileSync(join(home, 'file'), '')
  writeFileSync(join(home, 'folder', 'inner', 'file'), '')
  symlinkSync('/', join(home, 'link'))
  symlinkSync('/', join(home, 'folder', 'link'))
  symlinkSync(join(home, 'file'), join(home, 'linked-file'))
  for (const path of ['file', 'folder/inner/file', 'folder/inner/new', 'none/of/these']) await allowed(path)
  for (const path of ['link/etc/passwd', 'folder/link/etc'])
    await refused(path, 'leads through link, which is not a folder')
  await refused('file/a', 'leads through file, which is not a folder')
  for (const path of ['folder', 'folder/inner', 'link', 'linked-file']) await refused(path, 'exists and is not a file')
})
