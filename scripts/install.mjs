/**
 * Installs what is missing before an npm script runs: `npm start` needs what runs, and with `--dev` also what checks
 * and tests. A fresh clone has nothing, so this file imports nothing but Node and runs on Node 18, on machines whose
 * own Node is too old for the rest; a newer one comes with the packages.
 *
 * Invariant: when everything is there it changes nothing and costs a few milliseconds, and it never takes away
 * development packages that somebody has installed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')

main(process.argv.includes('--dev'))

/** @param {boolean} withDev */
function main(withDev) {
  const manifest = readJson(join(root, 'package.json'))
  const isReady = () => isComplete(manifest, withDev)
  if (!isReady()) {
    console.error('Installing what Molecule needs (once)…')
    const problem = install(withDev || hasDev(manifest))
    if (problem) return fail(`${problem}: see the lines above, check the network, then run the same command again.`)
    if (!isReady()) return fail('npm has not installed what package.json names: run "npm install", then try again.')
  }
  if (nodeMajor() >= NODE_MAJOR_MIN || existsSync(join(modules, '.bin', 'node'))) return
  const machine = `${process.platform}-${process.arch}`
  fail(`Molecule needs Node.js ${NODE_MAJOR_MIN} or newer and npm has none for ${machine}: install it yourself.`)
}

/**
 * All versions in package.json are exact, so that having the version named is being up to date. npm writes its hidden
 * lockfile last; without it an install was broken off half way.
 *
 * @param {any} manifest
 * @param {boolean} withDev
 */
function isComplete(manifest, withDev) {
  if (!existsSync(join(modules, '.package-lock.json'))) return false
  const wanted = { ...manifest.dependencies, ...(withDev ? manifest.devDependencies : {}) }
  const isThere = Object.entries(wanted).every(([name, spec]) => installedVersion(name) === versionOf(spec))
  return isThere && Object.entries(manifest.optionalDependencies ?? {}).every(isOptionalFine)
}

/**
 * An optional package is the Node of one kind of machine. It may be absent, unless it is the one of this machine and
 * the Node that runs here is too old to do without.
 *
 * @param {[string, unknown]} entry
 */
function isOptionalFine([name, version]) {
  const found = installedVersion(name)
  if (found !== undefined) return found === version
  const platform = process.platform === 'win32' ? 'win' : process.platform
  return nodeMajor() >= NODE_MAJOR_MIN || name !== `node-${platform}-${process.arch}`
}

/**
 * The exact version in a specifier: `1.2.3`, or of another name's package `npm:name@1.2.3`.
 *
 * @param {string} spec
 */
function versionOf(spec) {
  return spec.startsWith('npm:') ? spec.slice(spec.lastIndexOf('@') + 1) : spec
}

/** @param {any} manifest */
function hasDev(manifest) {
  return Object.keys(manifest.devDependencies ?? {}).some((name) => installedVersion(name) !== undefined)
}

/**
 * Runs `npm install`; answers what went wrong, or nothing. Not `npm ci`: that refuses a lockfile which lacks the
 * binaries of some other kind of machine, and a broken network would leave less than there was. `--no-save` keeps the
 * lockfile as it is. No package of ours needs an install script. What is asked for by `--include` holds against
 * NODE_ENV=production and the user's own settings, and a Node that is too old is no reason to refuse.
 *
 * @param {boolean} withDev
 * @returns {string | undefined}
 */
function install(withDev) {
  const kinds = [withDev ? '--include=dev' : '--omit=dev', '--include=optional']
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  const [command, ...args] = [
    ...npm(),
    'install',
    '--no-save',
    '--ignore-scripts',
    '--engine-strict=false',
    ...kinds,
    ...quiet,
  ]
  // What npm says goes to stderr, so that the output of the script itself can be piped.
  const { status, error } = spawnSync(String(command), args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (error) return `npm could not be started (${error.message})`
  return status === 0 ? undefined : `npm could not install the packages (exit code ${status})`
}

/**
 * The npm that runs this script, by the Node that runs that npm: `process.execPath` may be the Node inside
 * node_modules, which may be about to be replaced. Another package manager, or none, means the npm on PATH.
 *
 * @returns {string[]}
 */
function npm() {
  const cli = process.env['npm_execpath'] ?? ''
  if (/npm-cli\.c?js$/.test(cli)) return [process.env['npm_node_execpath'] ?? process.execPath, cli]
  return [process.platform === 'win32' ? 'npm.cmd' : 'npm']
}

/** @param {string} name */
function installedVersion(name) {
  const file = join(modules, name, 'package.json')
  return existsSync(file) ? readJson(file).version : undefined
}

function nodeMajor() {
  return Number.parseInt(process.versions.node, 10)
}

/** @param {string} file */
function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** @param {string} sentence */
function fail(sentence) {
  console.error(sentence)
  process.exitCode = 1
}
