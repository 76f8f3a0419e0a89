/** Runs the launchers in `bin/` and their entries as processes, in a small clone whose command prints its arguments. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { temporaryDir } from '../../test/harness/process-harness.ts'

const ROOT = join(import.meta.dirname, '../..')
const OLD_NODE = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })`
const COMMAND = `
  export async function main(argv: string[]): Promise<number> {
    console.log(JSON.stringify(argv))
    return 3
  }
`

function makeClone(t: TestContext): string {
  const folder = temporaryDir(t)
  const clone = join(folder, 'clone')
  cpSync(join(ROOT, 'bin'), join(clone, 'bin'), { recursive: true })
  mkdirSync(join(clone, 'src/cli'), { recursive: true })
  for (const file of ['launch.mjs', 'molecule.mjs', 'a2a.mjs']) {
    cpSync(join(import.meta.dirname, file), join(clone, 'src/cli', file))
  }
  writeFileSync(join(clone, 'package.json'), '{"type":"module"}')
  writeFileSync(join(clone, 'src/cli/molecule.ts'), COMMAND)
  writeFileSync(join(clone, 'src/cli/a2a.ts'), COMMAND)
  return clone
}

/** By default PATH has the Node of this test and the system's folders. */
function call(command: string, args: string[] = [], env: Record<string, string> = {}) {
  const path = `${dirname(process.execPath)}:/usr/bin:/bin`
  const { status, stdout, stderr } = spawnSync(command, args, {
    env: { PATH: path, ...env },
    encoding: 'utf8',
    cwd: '/',
  })
  return { status, stdout: stdout.trim(), stderr: stderr.trim() }
}

describe('a launcher', () => {
  it('passes its arguments unchanged and exits with the code of the command', (t) => {
    const clone = makeClone(t)
    const args = ['a b', '*', '', '$HOME']
    const expected = { status: 3, stdout: JSON.stringify(args), stderr: '' }
    assert.deepEqual(call(join(clone, 'bin/molecule'), args), expected)
    assert.deepEqual(call(join(clone, 'bin/a2a'), args), expected)
  })
  it('finds its clone through a chain of links and through a linked folder', (t) => {
    const clone = makeClone(t)
    const elsewhere = join(clone, '../elsewhere')
    mkdirSync(join(elsewhere, 'deep/er'), { recursive: true })
    symlinkSync('../../clone/bin/molecule', join(elsewhere, 'deep/first'))
    symlinkSync('../first', join(elsewhere, 'deep/er/second'))
    symlinkSync(join(elsewhere, 'deep/er'), join(elsewhere, 'linked'))
    symlinkSync(join(clone, 'bin'), join(elsewhere, 'programs'))
    for (const path of ['deep/first', 'deep/er/second', 'linked/second', 'programs/molecule']) {
      assert.equal(call(join(elsewhere, path), ['x']).stdout, '["x"]', path)
    }
  })
  it('prefers the Node that is installed in the clone', (t) => {
    const clone = makeClone(t)
    const own = join(clone, 'node_modules/.bin/node')
    mkdirSync(dirname(own), { recursive: true })
    writeFileSync(own, '#!/bin/sh\necho "own $#"\n')
    chmodSync(own, 0o755)
    assert.equal(call(join(clone, 'bin/molecule'), ['x']).stdout, 'own 2')
  })
  it('says what to do when there is no Node', (t) => {
    const clone = makeClone(t)
    const { status, stderr } = call('/bin/sh', [join(clone, 'bin/molecule')], { PATH: clone })
    assert.equal(status, 1)
    assert.match(stderr, /^Molecule needs Node\.js 24 or newer and finds none: .+"npm install".+\.$/)
  })
})

describe('an entry', () => {
  it('says what to do on a Node that is too old', (t) => {
    const clone = makeClone(t)
    const preload = `--import=data:text/javascript,${encodeURIComponent(OLD_NODE)}`
    const { status, stdout, stderr } = call(process.execPath, [preload, join(clone, 'src/cli/molecule.mjs')])
    assert.deepEqual({ status, stdout }, { status: 1, stdout: '' })
    assert.match(
      stderr,
      /^Molecule needs Node\.js 24 or newer and this is 20\.1\.0: run "npm install" in .+clone, .+\.$/,
    )
  })
  it('says what to do when the packages are not installed', (t) => {
    const clone = makeClone(t)
    writeFileSync(join(clone, 'src/cli/molecule.ts'), `import 'a-package-that-is-not-installed'\n${COMMAND}`)
    const { status, stderr } = call(join(clone, 'bin/molecule'))
    assert.equal(status, 1)
    assert.match(stderr, /^Packages that Molecule needs are not installed: run "npm install" in .+clone, .+\.$/)
  })
  it('shows the full error when a file of Molecule is missing', (t) => {
    const clone = makeClone(t)
    writeFileSync(join(clone, 'src/cli/molecule.ts'), `import './missing.ts'\n${COMMAND}`)
    const { status, stderr } = call(join(clone, 'bin/molecule'))
    assert.equal(status, 1)
    assert.match(stderr, /ERR_MODULE_NOT_FOUND/)
  })
})
