/**
 * Installs agent CLIs from npm into a cache folder of the user, one folder a version: what is there is complete, and a
 * second run installs nothing. Invariant: a folder gets its final name only when its program has started once, so a
 * broken-off install is never taken for a whole one.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Cli } from './clis.ts'

const INSTALL_MS_MAX = 10 * 60_000

/** Where installed CLIs are kept, by the rules of the XDG base directories. */
function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'molecule', 'agents')
}

/** The program of an installed CLI; throws where it is not installed. */
export function installedBin(cli: Cli): string {
  const bin = join(folderOf(cli), cli.bin)
  if (existsSync(bin)) return bin
  throw new Error(`${cli.name} ${cli.version} is not installed: run "npm run test:agents -- ${cli.name}" first.`)
}

/** Installs it unless it is there; gives the seconds that took, or undefined. Throws with what to do. */
export async function ensureInstalled(cli: Cli): Promise<number | undefined> {
  const folder = folderOf(cli)
  if (existsSync(folder)) return undefined
  const startMs = performance.now()
  await mkdir(dirname(folder), { recursive: true })
  // Beside its final place, for a rename works within one file system only.
  const making = await mkdtemp(`${folder}.making-`)
  try {
    installInto(making, cli)
    await rename(making, folder)
  } catch (error) {
    await rm(making, { recursive: true, force: true })
    // Somebody else was quicker.
    if (!existsSync(folder)) throw error
  }
  return (performance.now() - startMs) / 1000
}

const folderOf = ({ name, version }: Cli): string => join(cacheFolder(), `${name}-${version}`)

function installInto(folder: string, cli: Cli): void {
  const wanted = `${cli.npmPackage}@${cli.version}`
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  const how = ['--no-save', '--ignore-scripts', '--include=optional', '--omit=dev']
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const installed = run([npm, 'install', '--prefix', folder, ...how, ...quiet, wanted], process.env)
  if (installed !== undefined) throw new Error(`npm could not install ${wanted}. ${remedy(installed)}`)
  if (cli.finish !== undefined) {
    const finished = run([process.execPath, join(folder, cli.finish)], process.env)
    if (finished !== undefined) throw new Error(`${wanted} could not put its program in place: ${finished}`)
  }
  const started = startOnce(join(folder, cli.bin))
  if (started !== undefined) throw new Error(`${wanted} is installed and does not start: ${started}`)
}

const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT/

function remedy(said: string): string {
  if (!UNREACHABLE.test(said)) return `It said: ${said}`
  return `The npm registry cannot be reached from here: check the network, or set another one by npm_config_registry. npm said: ${said}`
}

/** Asks the program for its version, in a home of its own: a CLI that starts writes into its home. */
function startOnce(bin: string): string | undefined {
  const home = mkdtempSync(join(tmpdir(), 'molecule-agent-home-'))
  try {
    return run([bin, '--version'], { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home })
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** What went wrong, in its own words; undefined when nothing did. */
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
