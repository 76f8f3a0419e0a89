/**
 * The data folder and its lock: one process at a time. The lock is an exclusive SQLite transaction on `<data-dir>/lock`,
 * held until the process ends. The system releases it even after `kill -9`, so a stale lock cannot exist.
 * `platform.json` beside it tells other commands which process holds the lock and at which URL it listens.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MoleculeError } from '../../errors.ts'
import { ensurePrivateFile, restrictDataFolder } from './private-files.ts'

export interface RunningPlatform {
  readonly pid: number
  /** For clients on this machine. */
  readonly url: string
  /** ISO 8601. */
  readonly startedAt: string
  /** With the pid they identify the process (process/identity.ts); empty if unknown. */
  readonly startTime: string
  readonly bootId: string
}

export interface DataFolder {
  readonly path: string
  /** The folder and files that other users of this machine could use until now; their modes are corrected. */
  readonly mended: readonly string[]
  /** Writes `platform.json`, for a second `up` and for the other commands. */
  announce(platform: RunningPlatform): void
  /** Removes `platform.json` and releases the lock. Idempotent. */
  release(): void
}

/**
 * Creates the folder if it is missing, closes it to other users and locks it. Throws `in_use` with the process that holds
 * it, and `bad_config` if it belongs to another user.
 */
export function openDataFolder(path: string): DataFolder {
  makeFolder(path)
  const mended = restrictDataFolder(path)
  const lock = takeLock(path)
  // We hold the lock, so the process that wrote this file has ended.
  rmSync(announcementPath(path), { force: true })
  let released = false
  return {
    path,
    mended,
    announce(platform) {
      writeFileAtomically(announcementPath(path), `${JSON.stringify({ ...platform, folder: inodeOf(path) })}\n`)
    },
    release() {
      if (released) return
      released = true
      rmSync(announcementPath(path), { force: true })
      lock.close()
    },
  }
}

/** The platform that holds the folder; undefined when none does, or when it has not announced itself yet. */
export function readRunningPlatform(path: string): RunningPlatform | undefined {
  try {
    const value = JSON.parse(readFileSync(announcementPath(path), 'utf8')) as Partial<Announcement> | null
    // Prevents `molecule stop` on a copied folder from stopping the platform of the original.
    if (value?.folder !== undefined && value.folder !== inodeOf(path)) return undefined
    if (!Number.isSafeInteger(value?.pid) || !URL.canParse(String(value?.url))) return undefined
    const text = (key: 'startedAt' | 'startTime' | 'bootId') => String(value?.[key] ?? '')
    const { pid, url } = value as RunningPlatform
    return { pid, url, startedAt: text('startedAt'), startTime: text('startTime'), bootId: text('bootId') }
  } catch {
    // Missing or unreadable: the caller's message does without it.
    return undefined
  }
}

interface Announcement extends RunningPlatform {
  /** Absent in files of earlier versions. */
  readonly folder: string
}

/** Names a folder on this machine: a copy has another one, a renamed folder the same. */
export function inodeOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true })
  return `${dev}:${ino}`
}

/** Whether a process uses the folder. False where there is none. */
export function isFolderLocked(path: string): boolean {
  if (!existsSync(join(path, 'lock'))) return false
  try {
    takeLock(path).close()
    return false
  } catch (error) {
    return error instanceof MoleculeError && error.code === 'in_use'
  }
}

/** Writes a temporary file and renames it, so that no reader and no crash leaves half a file. */
export function writeFileAtomically(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.new`
  writeFileSync(temporary, text, { mode: 0o600, flush: true })
  renameSync(temporary, path)
}

export const announcementPath = (path: string): string => join(path, 'platform.json')

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new MoleculeError(
      'bad_config',
      `the data folder ${path} cannot be created (${code}); choose another with --data-dir`,
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
    ensurePrivateFile(join(path, 'lock'))
    lock = new DatabaseSync(join(path, 'lock'), { timeout: 0 })
    // Journal in memory: the database has no content, and a crash would leave a journal on disk behind.
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
    : `another Molecule process holds the data folder ${path} and is starting or stopping. Wait for it`
  return new MoleculeError('in_use', `${who}, or start a second one with --data-dir FOLDER --port PORT`, {
    cause,
    details: { path, ...holder },
  })
}
