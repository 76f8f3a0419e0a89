/**
 * The installer, run as a process in small clones of their own, with an npm that is a program of ours: it writes down
 * what it was asked for and lays out the packages.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

const INSTALLER = join(import.meta.dirname, 'install.mjs')

const NPM = `
  import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
  const args = process.argv.slice(2)
  writeFileSync('asked.json', JSON.stringify(args))
  if (process.env.NPM_FAILS) process.exit(7)
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const wanted = { ...dependencies, ...(args.includes('--include=dev') ? devDependencies : {}) }
  for (const [name, spec] of Object.entries(wanted)) {
    const version = spec.replace(/^npm:.*@/, '')
    mkdirSync('node_modules/' + name, { recursive: true })
    writeFileSync('node_modules/' + name + '/package.json', JSON.stringify({ name, version }))
  }
  writeFileSync('node_modules/.package-lock.json', '{}')
`

function makeClone(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-install-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'scripts'))
  cpSync(INSTALLER, join(folder, 'scripts', 'install.mjs'))
  writeFileSync(join(folder, 'npm-cli.js'), NPM)
  const setManifest = (dependencies: Record<string, string>) => {
    const manifest = {
      type: 'module',
      dependencies,
      devDependencies: { '@scope/checker': '2.0.0' },
      optionalDependencies: { 'node-of-elsewhere': '24.0.0' },
    }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  }
  setManifest({ runner: '1.0.0' })

  const asked = join(folder, 'asked.json')
  const install = (args: string[] = [], env: Record<string, string> = {}) => {
    rmSync(asked, { force: true })
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'scripts', 'install.mjs'), ...args], {
      cwd: tmpdir(),
      env: { npm_execpath: join(folder, 'npm-cli.js'), npm_node_execpath: process.execPath, ...env },
      encoding: 'utf8',
    })
    const npm: string[] | undefined = existsSync(asked) ? JSON.parse(readFileSync(asked, 'utf8')) : undefined
    return { status, stdout, stderr, npm }
  }
  return { folder, setManifest, install }
}

describe('installing what is missing', () => {
  it('knows a package that is installed under another name', (t) => {
    const { setManifest, install } = makeClone(t)
    setManifest({ old: 'npm:@scope/runner@0.3.1' })
    assert.equal(install().status, 0)
    assert.equal(install().npm, undefined)
  })

  it('installs what runs in a fresh clone, after one line that says so', (t) => {
    const { install } = makeClone(t)
    const { status, stdout, stderr, npm } = install()
    assert.deepEqual(
      { status, stdout, stderr },
      { status: 0, stdout: '', stderr: 'Installing what Molecule needs (once)…\n' },
    )
    assert.equal(npm?.[0], 'install')
    for (const flag of ['--no-save', '--ignore-scripts', '--omit=dev']) assert.ok(npm?.includes(flag), flag)
  })
  it('does nothing and says nothing when all is there', (t) => {
    const { install } = makeClone(t)
    install()
    assert.deepEqual(install(), { status: 0, stdout: '', stderr: '', npm: undefined })
  })
  it('adds what checks and tests when that is asked for', (t) => {
    const { install } = makeClone(t)
    install()
    assert.ok(install(['--dev']).npm?.includes('--include=dev'))
    assert.equal(install(['--dev']).npm, undefined)
    assert.equal(install().npm, undefined)
  })
  it('installs again when a version has changed, and then keeps the development packages', (t) => {
    const { setManifest, install } = makeClone(t)
    install(['--dev'])
    setManifest({ runner: '1.0.1' })
    const { npm } = install()
    assert.ok(npm?.includes('--include=dev'))
    assert.ok(!npm?.includes('--omit=dev'))
  })
  it('installs again when the last time was broken off', (t) => {
    const { folder, install } = makeClone(t)
    install()
    rmSync(join(folder, 'node_modules', '.package-lock.json'))
    assert.ok(install().npm)
  })
  it('installs again when an optional package has another version than the one named', (t) => {
    const { folder, install } = makeClone(t)
    install()
    mkdirSync(join(folder, 'node_modules', 'node-of-elsewhere'))
    writeFileSync(join(folder, 'node_modules', 'node-of-elsewhere', 'package.json'), '{"version":"23.0.0"}')
    const { status, stderr, npm } = install()
    assert.ok(npm)
    assert.equal(status, 1)
    assert.match(stderr, /npm has not installed what package\.json names/)
  })
  it('ends with one sentence that says what to do when npm fails', (t) => {
    const { install } = makeClone(t)
    const { status, stderr } = install([], { NPM_FAILS: '1' })
    assert.equal(status, 1)
    assert.match(stderr, /^npm could not install the packages \(exit code 7\): .+run the same command again\.$/m)
  })
})
