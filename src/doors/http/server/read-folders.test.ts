import assert from 'node:assert/strict'
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import test from 'node:test'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { temporaryDir } from '../../../../test/harness/process-harness.ts'

/** A temporary folder that is the home of the user while the test runs. */
function makeHome(t: TestContext): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'molecule-folders-')))
  const { HOME: before } = process.env
  process.env['HOME'] = home
  t.after(() => {
    if (before === undefined) delete process.env['HOME']
    else process.env['HOME'] = before
    rmSync(home, { recursive: true, force: true })
  })
  return home
}

const query = (path: string) => `GET /folders?path=${encodeURIComponent(path)}`

test('PL-11 an admin sees the folders of a folder, links among them, which are hidden and which are repositories', async (t) => {
  const home = makeHome(t)
  for (const name of ['b', 'a', '.cache', 'a/.git', 'b/inner']) mkdirSync(join(home, name))
  writeFileSync(join(home, 'file'), '')
  writeFileSync(join(home, 'b/.git'), 'gitdir: elsewhere')
  symlinkSync(join(home, 'a'), join(home, 'link'))
  symlinkSync(join(home, 'file'), join(home, 'file-link'))
  symlinkSync(join(home, 'gone'), join(home, 'broken'))
  const call = await openRoutes(t, {})
  const { status, json } = await call('GET /folders')
  const folder = (name: string, is_git: boolean) => ({ name, path: join(home, name), is_git })
  const listed = {
    path: home,
    parent: join(home, '..'),
    home,
    is_git: false,
    folders: [folder('a', true), folder('b', true), folder('link', true)],
    hidden: [folder('.cache', false)],
    truncated: false,
  }
  assert.deepEqual([status, json], [200, listed])
  for (const path of ['', '~', '~/', home]) assert.deepEqual((await call(query(path))).json, listed, path)
  const inner = (await call(query('~/b'))).json
  assert.deepEqual([inner.path, inner.parent, inner.is_git], [join(home, 'b'), home, true])
  assert.deepEqual(
    inner.folders,
    [folder('b/inner', false)].map((each) => ({ ...each, name: 'inner' })),
  )
  assert.equal((await call(query('/'))).json.parent, null)
})

test('PL-11 a path that is no folder is refused with the reason', async (t) => {
  const home = makeHome(t)
  writeFileSync(join(home, 'file'), '')
  const call = await openRoutes(t, {})
  const refused = async (path: string) => {
    const { status, json } = await call(query(path))
    return [status, json.error.message.replaceAll(home, 'HOME')]
  }
  assert.deepEqual(await refused(`${home}/gone`), [404, 'there is no folder HOME/gone'])
  assert.deepEqual(await refused(`${home}/file`), [400, 'HOME/file is not a folder'])
  assert.deepEqual(await refused(`/${'x'.repeat(300)}`), [400, `/${'x'.repeat(300)} cannot be read (ENAMETOOLONG)`])
  for (const path of ['relative', '~other', './x'])
    assert.deepEqual(await refused(path), [400, `path: ${JSON.stringify(path)} is not an absolute path`])
  assert.deepEqual(await refused('/a\0b'), [400, 'path: "/a\\u0000b" is not an absolute path'])
  const long = (characters: number) => `/${'./'.repeat(2100)}`.slice(0, characters)
  assert.equal((await call(query(long(4096)))).status, 200)
  assert.match(String((await refused(long(4097)))[1]), /is not an absolute path$/)
})

function makeFolder(t: TestContext): string {
  const folder = temporaryDir(t)
  return folder
}

test('PL-11 a folder shows at most 500 folders and 500 hidden ones, and says when there are more', async (t) => {
  const folder = makeFolder(t)
  const call = await openRoutes(t, {})
  const look = async () => {
    const { folders, hidden, truncated } = (await call(`GET /folders?path=${folder}`)).json
    return [folders.length, hidden.length, truncated]
  }
  const name = (index: number) => String(index).padStart(3, '0')
  for (let index = 0; index < 500; index++) {
    mkdirSync(join(folder, name(index)))
    mkdirSync(join(folder, `.${name(index)}`))
  }
  assert.deepEqual(await look(), [500, 500, false])
  mkdirSync(join(folder, '500'))
  assert.deepEqual(await look(), [500, 500, true])
  assert.equal((await call(`GET /folders?path=${folder}`)).json.folders[0].name, '000')
  rmSync(join(folder, '500'), { recursive: true })
  mkdirSync(join(folder, '.500'))
  assert.deepEqual(await look(), [500, 500, true])
})

test('PL-11 of a folder with very many files 20,000 entries are read', async (t) => {
  const folder = makeFolder(t)
  const first = join(folder, 'f0')
  writeFileSync(first, '')
  for (let index = 1; index < 20_000; index++) linkSync(first, join(folder, `f${index}`))
  const call = await openRoutes(t, {})
  assert.equal((await call(`GET /folders?path=${folder}`)).json.truncated, false)
  writeFileSync(join(folder, 'one-more'), '')
  assert.equal((await call(`GET /folders?path=${folder}`)).json.truncated, true)
})
