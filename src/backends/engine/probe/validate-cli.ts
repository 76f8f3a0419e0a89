/**
 * Is the program of an agent there, may it be run, and which version is it: asked before a workspace is said to work,
 * and answered in words that say what to do. Runs `--version` and nothing else: no model is called.
 */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import type { Processes } from '../../../process/processes.ts'
import type { Validation } from '../../backend.ts'
import { stderrTail } from '../failure/run-failure.ts'
import { type ProbeIsolation, type Scratch, withScratch } from './scratch.ts'

/** The slowest known program takes seconds to say its version, and more on a busy machine. */
const VERSION_MS_MAX = 50_000
const VERSION_BYTES_MAX = 64 * 1024

export interface ValidateCliOptions {
  readonly processes: Processes
  /** What we inherited; the program gets it stripped. */
  readonly env: Readonly<Record<string, string>>
  readonly backend: string
  readonly bin: string
  readonly versionArgs?: readonly string[]
  /** How to get the program, in a sentence without its end. */
  readonly install: string
  /** So that not even `--version` writes into its user's folders, as some do. */
  readonly quiet?: ProbeIsolation | undefined
}

export async function validateCli(probe: ValidateCliOptions, signal: AbortSignal): Promise<Validation> {
  const { backend, bin, install } = probe
  const found = await findProgram(bin, probe.env['PATH'] ?? '')
  if (found.path === undefined) {
    const problem = found.isThere ? `${bin} is there but not executable` : `${bin} is not found on PATH`
    const remedy = found.isThere
      ? `make it executable for this user (chmod +x), or name another with the option bin`
      : `${install}, or name its path with the option bin`
    return { ok: false, problem: `backend "${backend}": ${problem}`, remedy }
  }
  const { env: environment, quiet: known } = probe
  const quiet = known === undefined || known.isShared ? { stateIn: [] } : known
  const { path } = found
  return withScratch({ context: { environment }, quiet }, (scratch) => askVersion(probe, path, scratch), signal)
}

interface FoundProgram {
  readonly path: string | undefined
  /** A file of that name is there. */
  readonly isThere: boolean
}

/** As the system looks it up: on PATH, but for a name with a slash in it. */
export async function findProgram(bin: string, searchPath: string): Promise<FoundProgram> {
  const isPath = isAbsolute(bin) || bin.includes('/')
  const candidates = isPath
    ? [resolve(bin)]
    : searchPath
        .split(delimiter)
        .filter(Boolean)
        .map((dir) => join(dir, bin))
  let isThere = false
  for (const path of candidates) {
    if (!(await isFile(path))) continue
    isThere = true
    if (await isExecutable(path)) return { path, isThere }
  }
  return { path: undefined, isThere }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

async function askVersion(probe: ValidateCliOptions, path: string, scratch: Scratch): Promise<Validation> {
  const args = probe.versionArgs ?? ['--version']
  const result = await probe.processes.run(
    {
      command: [path, ...args],
      cwd: scratch.dir,
      env: scratch.env,
      mark: scratch.mark,
      input: '',
      outputBytesMax: VERSION_BYTES_MAX,
      stderrBytesKept: 1024,
      timeoutMs: VERSION_MS_MAX,
    },
    scratch.signal,
  )
  const question = `${path} ${args.join(' ')}`
  const output = new TextDecoder().decode(result.stdout)
  if (result.end === 'exited' && result.exitCode === 0) {
    const version = /\d+\.\d+(?:\.\d+)?[\w.+-]*/.exec(output)?.[0]
    return { ok: true, ...(version !== undefined && { version }), note: path }
  }
  const said = stderrTail(result).trim() || output.trim().slice(0, 500)
  const why =
    result.end === 'exited' ? `exit code ${result.exitCode ?? result.signal}` : result.end.replaceAll('_', ' ')
  return {
    ok: false,
    problem: `backend "${probe.backend}": \`${question}\` failed: ${why}${said && `: ${said}`}`,
    remedy: `run it by hand to see what it lacks; ${probe.install} mends a broken installation`,
  }
}
