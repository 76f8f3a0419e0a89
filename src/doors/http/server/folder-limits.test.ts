import assert from 'node:assert/strict'
import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-folders-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
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
