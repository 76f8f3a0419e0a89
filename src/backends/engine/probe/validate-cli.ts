/**
 * Validates the program of an agent: that it exists, is executable, and which version it is. A problem comes with what
 * the owner can do. Runs only `--version` and calls no model.
 */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import type { Processes } from '../../../process/processes.ts'
import type { Validation } from '../../backend.ts'
import { stderrTail } from '../failure/run-failure.ts'
import { type ProbeIsolation, type Scratch, withScratch } from './scratch.ts'

/** A slower program is invalid. The slowest known one takes seconds, and more on a busy machine. */
const VERSION_MS_MAX = 50_000
const VERSION_BYTES_MAX = 64 * 1024

export interface ValidateCliOptions {
  readonly processes: Processes
  /** The environment for the program, without secrets. */
  readonly env: Readonly<Record<string, string>>
  readonly backend: string
  readonly bin: string
  readonly versionArgs?: readonly string[]
  /** How to install the program: a sentence without a full stop. */
  readonly install: string
  /** Isolates the call, because some programs write into the user's folders even for `--version`. */
  readonly isolation?: ProbeIsolation | undefined
}

export async function validateCli(probe: ValidateCliOptions, signal: AbortSignal): Promise<Validation> {
  const { backend, bin, install } = probe
  const found = await findProgram(bin, probe.env['PATH'] ?? '')
  if (found.path === undefined) {
    const missing = isPath(bin) ? `there is no program ${bin}` : `${bin} is not found on PATH`
    const problem = found.isThere ? `${bin} is not executable` : missing
    const remedy = found.isThere
      ? `make it executable for this user (chmod +x), or set option bin to another program`
      : `${install}, or set option bin to its path`
    return { ok: false, problem: `backend "${backend}": ${problem}`, remedy }
  }
  const { env: environment, isolation: known } = probe
  const isolation = known === undefined || known.isShared ? { stateIn: [] } : known
  const { path } = found
  return withScratch({ context: { environment }, isolation }, (scratch) => askVersion(probe, path, scratch), signal)
}

interface FoundProgram {
  readonly path: string | undefined
  /** A file of that name exists, but may not be executable. */
  readonly isThere: boolean
}

/** As the system finds it: on PATH, unless the name contains a slash. */
export async function findProgram(bin: string, searchPath: string): Promise<FoundProgram> {
  const candidates = isPath(bin)
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

const isPath = (bin: string): boolean => isAbsolute(bin) || bin.includes('/')

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
  const call = `${path} ${args.join(' ')}`
  const output = new TextDecoder().decode(result.stdout)
  if (result.end === 'exited' && result.exitCode === 0) {
    const version = /\d{1,9}\.\d{1,9}(?:\.\d{1,9})?[\w.+-]*/.exec(output)?.[0]
    return { ok: true, version, note: path }
  }
  const shown = stderrTail(result).trim() || output.trim().slice(0, 500)
  const why =
    result.end === 'exited' ? `exit code ${result.exitCode ?? result.signal}` : result.end.replaceAll('_', ' ')
  return {
    ok: false,
    problem: `backend "${probe.backend}": \`${call}\` failed: ${why}${shown && `: ${shown}`}`,
    remedy: `run it by hand to see the problem; ${probe.install} repairs a broken installation`,
  }
}
