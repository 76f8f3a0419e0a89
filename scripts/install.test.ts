/**
 * The installer, run as a process in small temporary clones with a fake npm, which records its arguments and creates the
 * package folders.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { SOURCES } from './build-page.mjs'
import { readImports } from './read-imports.ts'

const SCRIPTS = ['install.mjs', 'build-page.mjs']

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
  for (const name of SCRIPTS) cpSync(join(import.meta.dirname, name), join(folder, 'scripts', name))
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
  const env = { npm_execpath: join(folder, 'npm-cli.js'), npm_node_execpath: process.execPath }
  const install = (args: string[] = [], more: Record<string, string> = {}) => {
    rmSync(npmArgs, { force: true })
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'scripts', 'install.mjs'), ...args], {
      cwd: tmpdir(),
      env: { ...env, ...more },
      encoding: 'utf8',
    })
    const npm: string[] | undefined = existsSync(npmArgs) ? JSON.parse(readFileSync(npmArgs, 'utf8')) : undefined
    return { status, stdout, stderr, npm }
  }
  /** A second install that does not wait; its exit code. */
  const installBeside = async () => {
    const child = spawn(process.execPath, [join(folder, 'scripts', 'install.mjs')], { env, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    return code
  }
  return { folder, setManifest, install, installBeside }
}

/** A page whose build appends a line to `.builds`, takes a moment, and fails when the source says so. */
const VITE = `
  import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
  appendFileSync('.builds', 'x')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  const source = readFileSync('src/main.ts', 'utf8')
  if (source === 'broken') process.exit(1)
  const folder = process.argv[process.argv.indexOf('--outDir') + 1]
  mkdirSync(folder)
  writeFileSync(folder + '/index.html', source)
`

function addPage(folder: string) {
  const web = join(folder, 'web')
  mkdirSync(join(web, 'src'), { recursive: true })
  mkdirSync(join(web, 'node_modules', 'vite', 'bin'), { recursive: true })
  writeFileSync(join(web, 'node_modules', 'vite', 'bin', 'vite.js'), VITE)
  writeFileSync(join(web, 'package.json'), '{"type":"module","devDependencies":{"vite":"8.0.0"}}')
  const write = (source: string) => writeFileSync(join(web, 'src', 'main.ts'), source)
  const built = () => {
    const file = join(web, 'dist', 'index.html')
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  }
  const builds = () => (existsSync(join(web, '.builds')) ? readFileSync(join(web, '.builds'), 'utf8').length : 0)
  rmSync(join(web, '.builds'), { force: true })
  return { web, write, built, builds }
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

describe('building the web page', () => {
  it('CV-1 builds once, again only after a change, and keeps the last good build when a build fails', (t) => {
    const { folder, install } = makeClone(t)
    const { write, built, builds } = addPage(folder)
    write('one')
    assert.match(install().stderr, /Installing the packages of the web page.*\nBuilding the web page/)
    assert.deepEqual([built(), builds()], ['one', 1])
    assert.deepEqual(install(), { status: 0, stdout: '', stderr: '', npm: undefined })
    assert.equal(builds(), 1)
    write('two')
    install()
    assert.deepEqual([built(), builds()], ['two', 2])
    write('broken')
    const failed = install()
    // The platform starts without its page; a check does not.
    assert.equal(failed.status, 0)
    assert.match(failed.stderr, /^The web page is not up to date: the build failed \(exit code 1\); .+\.$/m)
    assert.equal(built(), 'two')
    assert.equal(install(['--dev']).status, 1)
  })
  it('several starts at once build once, and a lock whose process is gone is taken over', async (t) => {
    const { folder, installBeside } = makeClone(t)
    const { write, built, builds } = addPage(folder)
    write('one')
    writeFileSync(join(folder, '.install.lock'), `4194305 ${Date.now()}`)
    assert.deepEqual(await Promise.all([installBeside(), installBeside(), installBeside()]), [0, 0, 0])
    assert.deepEqual([built(), builds()], ['one', 1])
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('.install.lock')),
      [],
    )
  })
  it('does nothing where the page is shipped built, without its sources', (t) => {
    const { folder, install } = makeClone(t)
    install()
    mkdirSync(join(folder, 'web', 'dist'), { recursive: true })
    assert.deepEqual(install(), { status: 0, stdout: '', stderr: '', npm: undefined })
  })
})

it('builds the page again when any file changes that it imports', () => {
  const root = join(import.meta.dirname, '..')
  const files = new Set(globSync('web/src/**/*.{ts,tsx}', { cwd: root }).filter((file) => !file.includes('.test.')))
  for (const file of files) {
    if (!/\.tsx?$/.test(file)) continue
    for (const { specifier, isType } of readImports(file, readFileSync(join(root, file), 'utf8'))) {
      if (!isType && specifier?.startsWith('.')) files.add(join(dirname(file), specifier).replaceAll('\\', '/'))
    }
  }
  const isSource = (file: string) => SOURCES.some((source) => file === source || file.startsWith(`${source}/`))
  assert.deepEqual(
    [...files].filter((file) => !isSource(file)),
    [],
  )
})
