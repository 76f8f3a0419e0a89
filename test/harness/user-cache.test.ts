import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { cleanEnvironment } from './command.ts'
import { temporaryDir } from './process-harness.ts'
import { installOnce } from './user-cache.ts'
import { within } from './wait.ts'

test('RE-12 of two installations at once the second leaves the files of the first in place', async (t) => {
  const folder = join(temporaryDir(t), 'tool')
  const bothFill = Promise.withResolvers<void>()
  const firstIsThere = Promise.withResolvers<void>()
  let filling = 0
  const install = (text: string, before: Promise<void>) =>
    installOnce(folder, async (temporary) => {
      if (++filling === 2) bothFill.resolve()
      await bothFill.promise
      await before
      writeFileSync(join(temporary, 'program'), text)
    })
  const second = install('second', firstIsThere.promise)
  await install('first', Promise.resolve())
  const { ino } = statSync(join(folder, 'program'))
  firstIsThere.resolve()
  await second
  assert.equal(statSync(join(folder, 'program')).ino, ino)
  assert.equal(readFileSync(join(folder, 'program'), 'utf8'), 'first')
  assert.deepEqual(readdirSync(dirname(folder)), ['tool'], 'nothing is left of the second')
})

test('RE-12 an installation that fails leaves nothing, and the next one succeeds', async (t) => {
  const folder = join(temporaryDir(t), 'tool')
  await assert.rejects(
    installOnce(folder, () => Promise.reject(new Error('the disk is full'))),
    /the disk is full/,
  )
  assert.deepEqual(readdirSync(dirname(folder)), [])
  await installOnce(folder, (temporary) => writeFileSync(join(temporary, 'program'), 'whole'))
  assert.deepEqual(readdirSync(folder), ['program'])
})

const CHROMIUM = new URL('../canvas/chromium.ts', import.meta.url).href
/** Begins at the first line of its input, and prints the browser's path, its file and whether it starts. */
const FIND_AND_START = `
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { findChromium } from ${JSON.stringify(CHROMIUM)}
console.log('ready')
await once(process.stdin, 'data')
process.stdin.destroy()
const path = await findChromium()
const { ino } = statSync(path)
const { status } = spawnSync(path, ['--headless', '--no-sandbox', '--version'])
console.log(JSON.stringify({ path, ino, status }))
`

test('RE-12 test files that unpack Chromium at once into an empty cache all keep the program that they started', async (t) => {
  const cache = temporaryDir(t)
  const finders = await Promise.all([1, 2, 3].map(() => startFinder(t, cache)))
  const found = await Promise.all(finders.map((find) => find()))
  const [{ path } = { path: '' }] = found
  assert.ok(path.startsWith(cache), path)
  const { ino } = statSync(path)
  assert.deepEqual(
    found,
    [1, 2, 3].map(() => ({ path, ino, status: 0 })),
  )
  assert.deepEqual(readdirSync(dirname(dirname(path))).length, 1, 'nothing is left of the others')
})

interface FoundChromium {
  readonly path: string
  readonly ino: number
  readonly status: number | null
}

/** A process that has loaded the code and waits; the returned function lets it go. PATH is empty: no system browser. */
async function startFinder(t: TestContext, cache: string): Promise<() => Promise<FoundChromium>> {
  const env = cleanEnvironment({ XDG_CACHE_HOME: cache, PATH: '' })
  const child = spawn(process.execPath, ['--input-type=module', '-e', FIND_AND_START], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)
  const nextLine = async () => (await within(once(lines, 'line'), 'the process that looks for Chromium answers'))[0]
  await nextLine()
  return async () => {
    const answer = nextLine()
    child.stdin.write('go\n')
    return JSON.parse(await answer)
  }
}
