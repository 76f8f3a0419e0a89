/**
 * Gives each subprocess its own cgroup (Linux, version 2), so that its end kills every descendant, also one that left
 * the process group and cleared its environment. Only where the platform may make cgroups below its own; elsewhere the
 * group and the mark have to do. No controller is enabled. Folders of children that left nothing behind are used again,
 * because making and removing one can wait for another child that is just entering its own.
 * Invariant: a folder that is used again has no process.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Log } from '../log.ts'
import { enteringCommand } from './enter-cgroup.ts'
import { findOwnCgroups } from './find-cgroup.ts'
import { killCgroup, ownerFolder, writeCgroupRecord } from './kill-cgroup.ts'
import type { SpawnOptions } from './processes.ts'

/** Empty folders beyond this are removed. */
const IDLE_FOLDERS_MAX = 32
const PROBE_MS_MAX = 5_000

/** The cgroup of one subprocess. */
export interface Cgroup {
  /** The command with which the child enters; undefined = start it as it is, then call `add`. */
  readonly entering: (options: SpawnOptions) => SpawnOptions['command'] | undefined
  /** Moves a child that has started. What it has forked before the move is not in the cgroup. */
  readonly add: (pid: number) => void
  /** Kills what is left in it. Resolves to whether all of it is gone. Never rejects. */
  readonly end: () => Promise<boolean>
}

export interface Cgroups {
  /** The folder of all cgroups of this platform. */
  readonly path: string
  /** Undefined if none can be made, because the system has a limit; the log says so. */
  take(): Cgroup | undefined
  /** Removes the folders. Call it when all children have ended. */
  close(): Promise<void>
}

export type CgroupsResult = { readonly cgroups: Cgroups } | { readonly cgroups?: never; readonly reason: string }

export interface CgroupsOptions {
  readonly owner: string
  readonly log: Log
  /** The folder of the orphan records: the next start and `doctor` read there what was used; undefined = no record. */
  readonly recordsDir?: string
  /** The owner of the platform wants none. */
  readonly isOff?: boolean
  /** Folders in which cgroups may be made; unset = our own cgroup in every cgroup2 mount. */
  readonly parents?: readonly string[]
}

/** Tries whether cgroups can be used, by moving a process. Call it after `reapOrphans`. */
export async function openCgroups(options: CgroupsOptions): Promise<CgroupsResult> {
  const result = await findUsable(options)
  const { log, recordsDir } = options
  const record = result.cgroups === undefined ? { reason: result.reason } : { path: result.cgroups.path }
  log.info(record, result.cgroups === undefined ? 'no cgroups are used' : 'each agent process gets its own cgroup')
  // Without the record the next start still looks below its own cgroup, so a full disk does not stop the platform.
  if (recordsDir !== undefined)
    await writeCgroupRecord(recordsDir, record).catch((error: unknown) =>
      log.warn({ err: error, recordsDir }, 'the record of the cgroups could not be written'),
    )
  return result
}

async function findUsable({ owner, log, parents, isOff }: CgroupsOptions): Promise<CgroupsResult> {
  if (isOff) return { reason: 'the setting cgroups is off' }
  if (process.platform !== 'linux') return { reason: 'only Linux has cgroups' }
  let reason = 'no cgroup2 file system shows the cgroup of this process'
  for (const parent of parents ?? (await findOwnCgroups())) {
    const path = join(parent, ownerFolder(owner))
    const problem = await tryCgroup(path)
    if (problem === undefined) return { cgroups: createCgroups(path, log) }
    reason = `${parent}: ${problem}`
  }
  return { reason }
}

/** Resolves to what is wrong. */
async function tryCgroup(path: string): Promise<string | undefined> {
  try {
    mkdirSync(path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') return `no cgroup can be made here (${codeOf(error)})`
  }
  const probe = join(path, 'probe')
  try {
    if (!existsSync(join(path, 'cgroup.kill'))) {
      rmdirSync(path)
      return 'there is no cgroup.kill (Linux has it since 5.14)'
    }
    mkdirSync(probe, { recursive: true })
    const [program, ...args] = ['/bin/sh', '-c', 'echo $$ >"$0"', join(probe, 'cgroup.procs')] as const
    await promisify(execFile)(program, args, { timeout: PROBE_MS_MAX })
    await killCgroup(probe)
    return undefined
  } catch {
    await killCgroup(path)
    return 'a process cannot be moved into a cgroup that was made here'
  }
}

function createCgroups(path: string, log: Log): Cgroups {
  const idle: string[] = []
  // A folder that could not be removed at an earlier start may have the same number.
  const prefix = Date.now().toString(36)
  let made = 0
  const make = (): string | undefined => {
    made += 1
    const folder = join(path, `${prefix}-${made}`)
    try {
      mkdirSync(folder)
      return folder
    } catch (error) {
      log.warn({ err: error, folder }, 'a process runs without its own cgroup')
      return undefined
    }
  }
  const giveBack = (folder: string) => {
    if (idle.length < IDLE_FOLDERS_MAX) idle.push(folder)
    else void killCgroup(folder)
  }
  return {
    path,
    take() {
      const folder = idle.pop() ?? make()
      return folder === undefined ? undefined : createCgroup(folder, { log, giveBack })
    },
    async close() {
      if (!(await killCgroup(path))) log.error({ path }, 'the cgroups of the platform cannot be removed')
    },
  }
}

function createCgroup(folder: string, { log, giveBack }: { log: Log; giveBack: (folder: string) => void }): Cgroup {
  const procsFile = join(folder, 'cgroup.procs')
  let adding: Promise<void> | undefined
  return {
    entering: (options) => enteringCommand(options, procsFile),
    add(pid) {
      adding = writeFile(procsFile, String(pid), { flag: 'r+' }).catch((error: NodeJS.ErrnoException) => {
        // ESRCH: it has already ended.
        if (error.code !== 'ESRCH') log.warn({ err: error, pid }, 'a process runs without its own cgroup')
      })
    },
    async end() {
      await adding
      if (isEmpty(folder)) {
        giveBack(folder)
        return true
      }
      // Not used again: its processes may have changed its settings, for example frozen it.
      const isGone = await killCgroup(folder)
      if (!isGone) log.error({ folder }, 'some processes of a cgroup cannot be killed')
      return isGone
    },
  }
}

/** Also about the cgroups below it. Zombies do not count. It takes no lock of the kernel and 20 us, so it is synchronous. */
function isEmpty(folder: string): boolean {
  try {
    return readFileSync(join(folder, 'cgroup.events'), 'utf8').includes('populated 0')
  } catch {
    // The folder was removed from outside.
    return false
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)
