/**
 * Installs agent CLIs from npm into the user's cache folder, one folder per version; a second run installs nothing.
 * Invariant: a folder gets its final name only after its program has started once, so a folder is always complete.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder, installOnce } from '../harness/user-cache.ts'

/** A program of an npm package, in an exact version. */
export interface Installable {
  readonly name: string
  readonly version: string
  readonly npmPackage: string
  /** Path of the program in the installation folder. */
  readonly bin: string
  readonly finish?: string
  /** Its optional packages are not needed: another copy of a program that is installed anyway. */
  readonly omitsOptional?: boolean
}

const INSTALL_MS_MAX = 10 * 60_000

/** The program of an installed CLI. Throws when the CLI is not installed. */
export function installedBin(cli: Installable): string {
  const bin = join(folderOf(cli), cli.bin)
  if (existsSync(bin)) return bin
  throw new Error(`${cli.name} ${cli.version} is not installed: run "npm run test:agents -- ${cli.name}" first.`)
}

/** Installs the CLI unless it is installed; the seconds it took, or undefined. Throws an error that says what to do. */
export function ensureInstalled(cli: Installable): Promise<number | undefined> {
  return installOnce(folderOf(cli), (folder) => installInto(folder, cli))
}

const folderOf = ({ name, version }: Installable): string => join(cacheFolder('agents'), `${name}-${version}`)

function installInto(folder: string, cli: Installable): void {
  const wanted = `${cli.npmPackage}@${cli.version}`
  npmInstall(folder, [wanted], cli.omitsOptional)
  if (cli.finish !== undefined) {
    const finished = run([process.execPath, join(folder, cli.finish)], process.env)
    if (finished !== undefined) throw new Error(`${wanted} could not put its program in place: ${finished}`)
  }
  const started = startOnce(join(folder, cli.bin))
  if (started !== undefined) throw new Error(`${wanted} is installed but does not start: ${started}`)
}

/** Installs these packages into the folder, without running their scripts. */
export function npmInstall(folder: string, packages: readonly string[], omitsOptional = false): void {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  const optional = omitsOptional ? '--omit=optional' : '--include=optional'
  const options = ['--no-save', '--ignore-scripts', optional, '--omit=dev']
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const installed = run([npm, 'install', '--prefix', folder, ...options, ...quiet, ...packages], process.env)
  if (installed !== undefined) throw new Error(`npm could not install ${packages.join(' ')}. ${remedy(installed)}`)
}

const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT/

function remedy(output: string): string {
  if (!UNREACHABLE.test(output)) return `npm printed: ${output}`
  return `The npm registry cannot be reached: check the network, or set another registry with npm_config_registry. npm printed: ${output}`
}

/** Runs `--version` in a temporary home, because a CLI writes into its home when it starts. */
function startOnce(bin: string): string | undefined {
  const home = mkdtempSync(join(tmpdir(), 'molecule-agent-home-'))
  try {
    return run([bin, '--version'], { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** The error output of a failed command; undefined when it succeeded. */
function run([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const { status, signal, error, stderr, stdout } = spawnSync(program, args, {
    cwd: tmpdir(),
    env,
    encoding: 'utf8',
    timeout: INSTALL_MS_MAX,
    shell: process.platform === 'win32',
  })
  if (status === 0) return undefined
  if (error !== undefined) return error.message
  return `${stderr}${stdout}`.trim().slice(0, 1000) || `it ended with ${signal ?? status}`
}
