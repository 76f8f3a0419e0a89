/**
 * The installer, run as a process in small temporary clones with a fake npm, which records its arguments and creates the
 * package folders.
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
  writeFileSync('npm-args.json', JSON.stringify(args))
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

  const npmArgs = join(folder, 'npm-args.json')
  const install = (args: string[] = [], env: Record<string, string> = {}) => {
    rmSync(npmArgs, { force: true })
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'scripts', 'install.mjs'), ...args], {
      cwd: tmpdir(),
      env: { npm_execpath: join(folder, 'npm-cli.js'), npm_node_execpath: process.execPath, ...env },
      encoding: 'utf8',
    })
    const npm: string[] | undefined = existsSync(npmArgs) ? JSON.parse(readFileSync(npmArgs, 'utf8')) : undefined
    return { status, stdout, stderr, npm }
  }
  return { folder, setManifest, install }
}

describe('installing missing packages', () => {
  it('recognises a package that is installed under another name', (t) => {
    const { setManifest, install } = makeClone(t)
    setManifest({ old: 'npm:@scope/runner@0.3.1' })
    assert.equal(install().status, 0)
    assert.equal(install().npm, undefined)
  })

  it('installs the runtime packages in a fresh clone and prints one line', (t) => {
    const { install } = makeClone(t)
    const { status, stdout, stderr, npm } = install()
    assert.deepEqual(
      { status, stdout, stderr },
      { status: 0, stdout: '', stderr: 'Installing the packages of Molecule (once)…\n' },
    )
    assert.equal(npm?.[0], 'install')
    for (const flag of ['--no-save', '--ignore-scripts', '--omit=dev']) assert.ok(npm?.includes(flag), flag)
  })
  it('does nothing and prints nothing when nothing is missing', (t) => {
    const { install } = makeClone(t)
    install()
    assert.deepEqual(install(), { status: 0, stdout: '', stderr: '', npm: undefined })
  })
  it('adds the development packages with --dev', (t) => {
    const { install } = makeClone(t)
    install()
    assert.ok(install(['--dev']).npm?.includes('--include=dev'))
    assert.equal(install(['--dev']).npm, undefined)
    assert.equal(install().npm, undefined)
  })
  it('installs again when a version has changed, and keeps the development packages', (t) => {
    const { setManifest, install } = makeClone(t)
    install(['--dev'])
    setManifest({ runner: '1.0.1' })
    const { npm } = install()
    assert.ok(npm?.includes('--include=dev'))
    assert.ok(!npm?.includes('--omit=dev'))
  })
  it('installs again after an interrupted install', (t) => {
    const { folder, install } = makeClone(t)
    install()
    rmSync(join(folder, 'node_modules', '.package-lock.json'))
    assert.ok(install().npm)
  })
  it('installs again when an optional package has the wrong version', (t) => {
    const { folder, install } = makeClone(t)
    install()
    mkdirSync(join(folder, 'node_modules', 'node-of-elsewhere'))
    writeFileSync(join(folder, 'node_modules', 'node-of-elsewhere', 'package.json'), '{"version":"23.0.0"}')
    const { status, stderr, npm } = install()
    assert.ok(npm)
    assert.equal(status, 1)
    assert.match(stderr, /npm did not install every package of package\.json/)
  })
  it('prints one sentence with advice when npm fails', (t) => {
    const { install } = makeClone(t)
    const { status, stderr } = install([], { NPM_FAILS: '1' })
    assert.equal(status, 1)
    assert.match(stderr, /^npm could not install the packages \(exit code 7\): .+run the same command again\.$/m)
  })
})
