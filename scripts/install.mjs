/**
 * Installs missing packages before an npm script runs: runtime packages, and with `--dev` also the development ones. Then
 * it builds the web page where that is missing or out of date (`build-page.mjs`).
 * A fresh clone has no packages and the machine's Node may be too old for the rest, so this file imports only Node's
 * own modules and runs on Node 18. A newer Node is one of the packages.
 *
 * Invariant: when nothing is missing it changes nothing and takes a few milliseconds. It never removes installed
 * development packages.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPage, isPageReady, withInstallLock } from './build-page.mjs'

const NODE_MAJOR_MIN = 24
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')

main(process.argv.includes('--dev'))

/** @param {boolean} withDev */
function main(withDev) {
  const manifest = readJson(join(root, 'package.json'))
  const page = {
    root,
    withPackages: withDev,
    hasPackages: hasAllPackages,
    installPackages: (/** @type {string} */ folder) => install(folder, true),
  }
  if (!isComplete(manifest, withDev)) {
    withInstallLock(root, () => installOwnPackages(manifest, withDev))
    if (process.exitCode) return
  }
  if (nodeMajor() < NODE_MAJOR_MIN && !existsSync(join(modules, '.bin', 'node'))) {
    const machine = `${process.platform}-${process.arch}`
    return fail(
      `Molecule needs Node.js ${NODE_MAJOR_MIN} or newer, and npm has no Node.js for ${machine}: install it yourself.`,
    )
  }
  const problem = isPageReady(page) ? undefined : withInstallLock(root, () => buildPage(page))
  if (problem === undefined) return
  // A platform without its page still works; a check or a test without it would fail with a less clear reason.
  const sentence = `The web page is not up to date: ${problem}; see the lines above, then run the same command again.`
  if (withDev) fail(sentence)
  else console.error(sentence)
}

/**
 * @param {any} manifest
 * @param {boolean} withDev
 */
function installOwnPackages(manifest, withDev) {
  // Another start may have installed them while this one waited.
  if (isComplete(manifest, withDev)) return
  console.error('Installing the packages of Molecule (once)…')
  const problem = install(root, withDev || hasDev(manifest))
  if (problem) return fail(`${problem}: see the lines above, check the network, then run the same command again.`)
  if (!isComplete(manifest, withDev))
    fail('npm did not install every package of package.json: run "npm install", then try again.')
}

/**
 * Whether every package of another folder's package.json is installed in its exact version.
 *
 * @param {string} folder
 */
function hasAllPackages(folder) {
  if (!existsSync(join(folder, 'node_modules', '.package-lock.json'))) return false
  const { dependencies, devDependencies } = readJson(join(folder, 'package.json'))
  return Object.entries({ ...dependencies, ...devDependencies }).every(
    ([name, spec]) => installedVersion(name, folder) === versionOf(spec),
  )
}

/**
 * All versions in package.json are exact, so an equal version is up to date. npm writes its hidden lockfile last; without
 * it, an earlier install was interrupted.
 *
 * @param {any} manifest
 * @param {boolean} withDev
 */
function isComplete(manifest, withDev) {
  if (!existsSync(join(modules, '.package-lock.json'))) return false
  const wanted = { ...manifest.dependencies, ...(withDev ? manifest.devDependencies : {}) }
  const isInstalled = Object.entries(wanted).every(([name, spec]) => installedVersion(name) === versionOf(spec))
  return isInstalled && Object.entries(manifest.optionalDependencies ?? {}).every(isOptionalFine)
}

/**
 * Each optional package is a Node for one kind of machine. It may be missing, unless it is for this machine and the Node
 * that runs this script is too old.
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
 * The exact version in a specifier: `1.2.3`, or `npm:name@1.2.3` for a package that is installed under another name.
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
 * Runs `npm install`; returns the problem, or undefined. Not `npm ci`: it refuses a lockfile that lacks the binaries of
 * another kind of machine, and it deletes node_modules first, which is fatal when the network then fails. `--no-save`
 * keeps the lockfile unchanged. `--ignore-scripts`: no package needs an install script. `--include` overrides
 * NODE_ENV=production and the user's npm settings. `--engine-strict=false` allows an old Node.
 *
 * @param {string} folder
 * @param {boolean} withDev
 * @returns {string | undefined}
 */
function install(folder, withDev) {
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
  // npm's output goes to stderr, so that the output of the npm script itself can be piped.
  const { status, error } = spawnSync(String(command), args, { cwd: folder, stdio: ['ignore', 2, 2] })
  if (error) return `npm could not be started (${error.message})`
  return status === 0 ? undefined : `npm could not install the packages (exit code ${status})`
}

/**
 * The npm that runs this script, with the Node that runs that npm. Not `process.execPath`: it may be the Node inside
 * node_modules, which npm may be about to replace. Without npm, or under another package manager: the npm on PATH.
 *
 * @returns {string[]}
 */
function npm() {
  const cli = process.env['npm_execpath'] ?? ''
  if (/npm-cli\.c?js$/.test(cli)) return [process.env['npm_node_execpath'] ?? process.execPath, cli]
  return [process.platform === 'win32' ? 'npm.cmd' : 'npm']
}

/**
 * @param {string} name
 * @param {string} folder
 */
function installedVersion(name, folder = root) {
  const file = join(folder, 'node_modules', name, 'package.json')
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
