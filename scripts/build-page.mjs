/**
 * Builds the web page into `web/dist/` when its sources have changed since the last build, with the packages of `web/`.
 * Like `install.mjs`, which calls it, it imports only Node's own modules and runs on Node 18; the build itself runs on
 * the Node that `install.mjs` installed.
 *
 * Invariant: `web/dist/` is always a whole build. A new build is made beside it and then takes its place.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The name of the file in `dist/` that holds the hash of the sources it was built from. */
const HASH_FILE = '.sources'
/** What the build reads: the page itself, and what it imports of the platform. */
/** What the page is made of. A change elsewhere needs no new build. */
export const SOURCES = [
  'web',
  'src/client',
  'src/protocol',
  ...['backoff', 'clock', 'duration', 'errors', 'markdown', 'printable', 'trim-end', 'truncate', 'wait'].map(
    (leaf) => `src/${leaf}.ts`,
  ),
]
const NOT_SOURCES = /^(node_modules|dist.*|\..*)$|\.test\.ts$/

/**
 * @typedef {object} BuildPageOptions
 * @property {string} root the clone
 * @property {boolean} withPackages also installs the packages when the page is already built, for checks and tests
 * @property {(folder: string) => string | undefined} installPackages returns the problem, or undefined
 * @property {(folder: string) => boolean} hasPackages
 */

/**
 * Whether there is nothing to do.
 *
 * @param {BuildPageOptions} options
 */
export function isPageReady({ root, withPackages, hasPackages }) {
  const web = join(root, 'web')
  // The package of a release has the built page and not its sources.
  if (!existsSync(join(web, 'package.json'))) return true
  return isBuilt(root) && (!withPackages || hasPackages(web))
}

/**
 * Returns the problem, or undefined.
 *
 * @param {BuildPageOptions} options
 * @returns {string | undefined}
 */
export function buildPage(options) {
  if (isPageReady(options)) return undefined
  const { root, hasPackages, installPackages } = options
  const web = join(root, 'web')
  if (!hasPackages(web)) {
    console.error('Installing the packages of the web page (once)…')
    const problem = installPackages(web)
    if (problem !== undefined) return problem
    if (!hasPackages(web)) return 'npm did not install every package of web/package.json'
  }
  return isBuilt(root) ? undefined : build(root)
}

/** @param {string} root */
function build(root) {
  console.error('Building the web page (once)…')
  const web = join(root, 'web')
  const hash = hashSources(root)
  const fresh = join(web, `dist-${process.pid}`)
  const old = join(web, `dist-old-${process.pid}`)
  const node = join(root, 'node_modules', '.bin', 'node')
  const vite = join(web, 'node_modules', 'vite', 'bin', 'vite.js')
  const args = [vite, 'build', '--outDir', fresh, '--emptyOutDir', '--logLevel', 'error']
  const { status, error } = spawnSync(existsSync(node) ? node : process.execPath, args, {
    cwd: web,
    stdio: ['ignore', 2, 2],
  })
  try {
    if (error) return `the build could not be started (${error.message})`
    if (status !== 0) return `the build failed (exit code ${status})`
    writeFileSync(join(fresh, HASH_FILE), hash)
    const dist = join(web, 'dist')
    if (existsSync(dist)) renameSync(dist, old)
    renameSync(fresh, dist)
    return undefined
  } finally {
    for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} root */
function isBuilt(root) {
  const file = join(root, 'web', 'dist', HASH_FILE)
  return existsSync(file) && readFileSync(file, 'utf8') === hashSources(root)
}

/** @param {string} root */
function hashSources(root) {
  const hash = createHash('sha256')
  for (const path of SOURCES) addToHash(hash, root, path)
  return hash.digest('hex')
}

/**
 * @param {import('node:crypto').Hash} hash
 * @param {string} root
 * @param {string} path
 */
function addToHash(hash, root, path) {
  const full = join(root, path)
  if (!existsSync(full)) return
  const entries = /\.\w+$/.test(path) ? undefined : readdirSync(full, { withFileTypes: true })
  if (entries === undefined) {
    hash.update(`${path}\n`).update(readFileSync(full)).update('\n')
    return
  }
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (NOT_SOURCES.test(entry.name)) continue
    const below = `${path}/${entry.name}`
    if (entry.isDirectory()) addToHash(hash, root, below)
    else
      hash
        .update(`${below}\n`)
        .update(readFileSync(join(root, below)))
        .update('\n')
  }
}

const LOCK_POLL_MS = 100
/** A lock that is older than this is left over, whatever its process is. */
const LOCK_MS_MAX = 15 * 60_000

/**
 * Runs the work while no other install of this clone runs. Prevents two starts at once from writing the same folders.
 *
 * @template T
 * @param {string} root
 * @param {() => T} work
 * @returns {T}
 */
export function withInstallLock(root, work) {
  const lock = join(root, '.install.lock')
  while (!takeLock(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS)
  try {
    return work()
  } finally {
    rmSync(lock, { force: true })
  }
}

/**
 * The lock is one file with the id of its process. It is made whole beside its place and then linked there, so that no
 * other process ever sees it without its owner.
 *
 * @param {string} lock
 */
function takeLock(lock) {
  const own = `${lock}-${process.pid}`
  writeFileSync(own, `${process.pid} ${Date.now()}`)
  try {
    linkSync(own, lock)
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    removeLeftOver(lock, own)
    return false
  } finally {
    rmSync(own, { force: true })
  }
}

/**
 * Moves a left-over lock away before it is deleted: of two processes that found it, only one moves it, and neither
 * deletes the lock that the other has made since.
 *
 * @param {string} lock
 * @param {string} own
 */
function removeLeftOver(lock, own) {
  try {
    const text = readFileSync(lock, 'utf8')
    if (!isLeftOver(text)) return
    const moved = `${own}-left-over`
    renameSync(lock, moved)
    // Another process took the lock between the two steps: it gets its lock back.
    if (readFileSync(moved, 'utf8') === text) rmSync(moved)
    else renameSync(moved, lock)
  } catch (error) {
    // Its owner has just released it.
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error
  }
}

/** @param {string} text */
function isLeftOver(text) {
  const [pid, sinceMs] = text.split(' ').map(Number)
  if (!pid || Date.now() - Number(sinceMs) > LOCK_MS_MAX) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH'
  }
}
