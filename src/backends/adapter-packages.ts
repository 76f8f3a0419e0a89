/**
 * The packages that an adapter needs: which of its `dependencies` are missing, and their installation by npm before the
 * adapter is loaded. Scripts of packages are off: a package must not run code because its adapter lies in a folder.
 */
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ulid } from '../ids.ts'
import type { Log } from '../log.ts'
import { childEnvironment } from '../process/child-environment.ts'
import type { Processes } from '../process/processes.ts'
import { isJsonObject } from '../protocol/json.ts'

/** What npm runs with. */
export interface PackageInstaller {
  readonly processes: Pick<Processes, 'run'>
  readonly environment: Readonly<Record<string, string>>
  /** Ends the installations of all adapters together: a start must not take for ever. */
  readonly signal: AbortSignal
  readonly log: Log
}

/** More dependencies are not looked at; npm still installs all of them. */
const DEPENDENCIES_MAX = 500
const NPM_OUTPUT_BYTES_MAX = 1024 * 1024
/** An error of npm in a sentence. */
const PROBLEM_CHARACTERS_MAX = 300

/** Peers are not installed: `molecule` is one, and the registry may have another package of that name. */
const NPM_INSTALL = ['npm', 'install', '--ignore-scripts', '--legacy-peer-deps', '--omit=dev'] as const

/** The `dependencies` of a package.json that Node would not find from this folder, in the order of the file. */
export function missingPackages(folder: string, { dependencies }: Readonly<Record<string, unknown>>): string[] {
  if (!isJsonObject(dependencies)) return []
  const folders = foldersAbove(realpathSync(folder))
  const isHere = (name: string) => folders.some((one) => existsSync(join(one, 'node_modules', name, 'package.json')))
  return Object.keys(dependencies)
    .slice(0, DEPENDENCIES_MAX)
    .filter((name) => PACKAGE_NAME.test(name) && !isHere(name))
}

const PACKAGE_NAME = /^(?:@[\w.~-]{1,100}\/)?[\w.~-]{1,214}$/

/** The folder and all above it, where Node looks for packages. */
function foldersAbove(folder: string): string[] {
  const above = dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersAbove(above)]
}

/** True when npm has installed them. */
export async function installPackages(
  { adapter, folder, missing }: { adapter: string; folder: string; missing: readonly string[] },
  { processes, environment, signal, log }: PackageInstaller,
): Promise<boolean> {
  log.warn({ adapter }, `the adapter "${adapter}" needs ${packagesText(missing)}; npm installs what is missing now`)
  const { end, exitCode, stderrTail } = await processes.run(
    {
      command: [...NPM_INSTALL, '--no-audit', '--no-fund', '--loglevel=error'],
      cwd: folder,
      env: childEnvironment(environment, {}),
      mark: `npm-${ulid()}`,
      input: '',
      outputBytesMax: NPM_OUTPUT_BYTES_MAX,
    },
    signal,
  )
  if (end === 'exited' && exitCode === 0) return true
  const problem = npmProblem(end, Buffer.from(stderrTail).toString())
  log.error({ adapter, folder }, `${problem}, so the adapter "${adapter}" lacks its packages`)
  return false
}

/** What is missing and how to get it. */
export function notInstalledText(folder: string, missing: readonly string[]): string {
  return `it needs ${packagesText(missing)}; run: ${commandIn(folder, NPM_INSTALL.join(' '))}`
}

/** As it is typed into a shell. */
export function commandIn(folder: string, command: string): string {
  const quoted = /^[\w./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", `'\\''`)}'`
  return `cd ${quoted} && ${command}`
}

function packagesText(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ')
  const more = names.length > 5 ? ` and ${names.length - 5} more` : ''
  return names.length === 1
    ? `the package ${shown}, which is not installed`
    : `the packages ${shown}${more}, which are not installed`
}

function npmProblem(end: string, stderr: string): string {
  if (end === 'spawn_failed') return 'npm was not found'
  if (end === 'canceled') return 'npm took too long'
  const line = stderr.split('\n').find((one) => one.startsWith('npm error') && !/^npm error code\b/.test(one))
  return `npm failed: ${(line ?? stderr.trim()).replace(/^npm error\s*/, '').slice(0, PROBLEM_CHARACTERS_MAX)}`
}
