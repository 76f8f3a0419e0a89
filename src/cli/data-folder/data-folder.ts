/**
 * The data folder and the lock on it: one process at a time. The lock is an exclusive SQLite transaction on
 * `<data-dir>/lock`, held for life; the system drops it with the process, `kill -9` included, so there is no stale
 * lock to clean up and no pid to guess about. `platform.json` beside it only tells others who holds it.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MoleculeError } from '../../errors.ts'

export interface RunningPlatform {
  readonly pid: number
  readonly url: string
  /** ISO 8601. */
  readonly startedAt: string
}

export interface DataFolder {
  readonly path: string
  /** Others of this machine can look into it, because whoever made it let them. */
  readonly openToOthers: boolean
  /** Tells a second `up`, and the other commands, where this platform is. */
  announce(platform: RunningPlatform): void
  /** Takes the announcement back and frees the lock. Idempotent. */
  release(): void
}

/** Makes the folder where it is missing and locks it, or throws `in_use` naming the process that has it. */
export function openDataFolder(path: string): DataFolder {
  makeFolder(path)
  const lock = takeLock(path)
  // Holding the lock proves that whoever wrote this is gone.
  rmSync(announcementPath(path), { force: true })
  let released = false
  return {
    path,
    openToOthers: (statSync(path).mode & 0o007) !== 0,
    announce(platform) {
      writeFileAtomically(announcementPath(path), `${JSON.stringify(platform)}\n`)
    },
    release() {
      if (released) return
      released = true
      rmSync(announcementPath(path), { force: true })
      lock.close()
    },
  }
}

/** What the holder of the folder said of itself, or undefined when nobody did (yet). */
export function readRunningPlatform(path: string): RunningPlatform | undefined {
  try {
    const value = JSON.parse(readFileSync(announcementPath(path), 'utf8')) as Partial<RunningPlatform> | null
    if (typeof value?.pid !== 'number' || typeof value.url !== 'string') return undefined
    return { pid: value.pid, url: value.url, startedAt: String(value.startedAt ?? '') }
  } catch {
    // Missing, or not ours to read: the caller's sentence does without it.
    return undefined
  }
}

/** Written aside and renamed, so that a reader never sees half of it and a crash never leaves half of it. */
export function writeFileAtomically(path: string, text: string): void {
  const aside = `${path}.${process.pid}.new`
  writeFileSync(aside, text, { mode: 0o600, flush: true })
  renameSync(aside, path)
}

const announcementPath = (path: string): string => join(path, 'platform.json')

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new MoleculeError(
      'bad_config',
      `the data folder ${path} cannot be made (${code}); choose another with --data-dir`,
      {
        cause,
        details: { key: 'data-dir' },
      },
    )
  }
}

function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(join(path, 'lock'), { timeout: 0 })
    // In memory: the file never gets content, and a journal on disk would be one more thing for a crash to leave.
    lock.exec('pragma journal_mode = memory; pragma locking_mode = exclusive; begin exclusive')
    return lock
  } catch (cause) {
    lock?.close()
    if (isBusy(cause)) throw inUseError(path, cause)
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new MoleculeError(
      'bad_config',
      `the data folder ${path} cannot be locked (${problem}); choose another with --data-dir`,
      {
        cause,
        details: { key: 'data-dir' },
      },
    )
  }
}

const SQLITE_BUSY = 5

function isBusy(thrown: unknown): boolean {
  return ((thrown as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY
}

function inUseError(path: string, cause: unknown): MoleculeError {
  const holder = readRunningPlatform(path)
  const who = holder
    ? `Molecule runs on the data folder ${path} already: process ${holder.pid} at ${holder.url}. Use that one`
    : `another Molecule process holds the data folder ${path} and is just starting or stopping. Wait for it`
  return new MoleculeError('in_use', `${who}, or start a second one with --data-dir FOLDER --port PORT`, {
    cause,
    details: { path, ...holder },
  })
}
