/**
 * Damage of the embedded store: SQLite reports a page that is no valid page (11), or a file that is no database (26).
 * Invariant: after the first such report nothing is written any more. A damaged store that goes on accepting messages
 * loses them later, and each write may spread the damage.
 */
import { existsSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { type Log, silentLog } from '../../log.ts'
import { type BackgroundCheck, startBackgroundCheck } from './background-check.ts'
import { isDamage, SQLITE_CORRUPT } from './errors.ts'

/** Bridges and callers keep what they could not send; this is how often they try. */
const DAMAGED_RETRY_AFTER_MS = 60_000
/**
 * `quick_check` reads the whole file and holds the start: 0.3 s for 100 MB, 3.5 s for 1 GB (measured, cached pages). A
 * larger store is checked in the background, and is used meanwhile.
 */
const CHECKED_BYTES_MAX = 1024 ** 3

export interface DamageLatch {
  /** The refusal of every write, once damage was reported. */
  readonly error: MoleculeError | undefined
  /** Notes the error if it reports damage; true when the store is damaged. */
  report(error: unknown): boolean
}

export function createDamageLatch(path: string, log: Log = silentLog): DamageLatch {
  let refusal: MoleculeError | undefined
  return {
    get error() {
      return refusal
    },
    report(error) {
      if (refusal === undefined && isDamage(error)) {
        log.error({ err: error, path }, startRefusal(path, error).message)
        refusal = runningRefusal(error)
      }
      return refusal !== undefined
    },
  }
}

/** For the owner, on the terminal and in the log: the file and the way back. */
export function startRefusal(path: string, cause: unknown): MoleculeError {
  const problem = cause instanceof Error ? cause.message : String(cause)
  const message = [
    `the store ${path} is damaged (${problem}), so nothing is written to it.`,
    `To get back: stop the platform, keep copies of ${path}, ${path}-wal and ${path}-shm,`,
    'then put back the files of your last backup; without a backup, rescue what can be read with',
    `"sqlite3 ${path} .recover | sqlite3 rescued.db" and use rescued.db in its place (docs/data-folder.md)`,
  ].join(' ')
  return new MoleculeError('store_damaged', message, { cause, details: { path } })
}

/** For every caller, so without the path. Retryable: callers and bridges keep their messages until the owner is done. */
function runningRefusal(cause: unknown): MoleculeError {
  const message = 'the store is damaged and accepts nothing; the log of the platform names the file and the way back'
  const details = { retryAfterMs: DAMAGED_RETRY_AFTER_MS }
  return new MoleculeError('store_damaged', message, { retryable: true, cause, details })
}

/** The write-ahead log is removed by a proper close. If it exists before the store is opened, the last process crashed. */
export const wasNotClosed = (path: string): boolean => existsSync(`${path}-wal`)

interface CheckOptions {
  readonly path: string
  readonly clock: Clock
  readonly log?: Log | undefined
}

/** Throws when the pages of the store do not fit together. Returns the check that goes on, for a large store. */
export function checkAfterCrash(
  { database, damage }: { readonly database: DatabaseSync; readonly damage: DamageLatch },
  { path, clock, log = silentLog }: CheckOptions,
): BackgroundCheck | undefined {
  const { size: bytes } = statSync(path)
  if (bytes > CHECKED_BYTES_MAX) return checkLater(damage, { path, clock, log })
  const startMs = clock.monotonicMs()
  // With limit 1 it stops at the first problem.
  const row = database.prepare('pragma quick_check(1)').get() as { quick_check?: unknown } | undefined
  const problem = String(row?.quick_check ?? 'no answer')
  if (problem !== 'ok') throw startRefusal(path, problem)
  const tookMs = Math.round(clock.monotonicMs() - startMs)
  log.info({ path, bytes, tookMs }, 'the last platform did not close the store; its pages were checked and are whole')
  return undefined
}

function checkLater(damage: DamageLatch, { path, clock, log = silentLog }: CheckOptions): BackgroundCheck {
  log.warn({ path }, 'the last platform did not close the store; its pages are checked in the background')
  const startMs = clock.monotonicMs()
  const check = startBackgroundCheck(path)
  void check.result.then(({ problem, failure }) => {
    const tookMs = Math.round(clock.monotonicMs() - startMs)
    if (problem !== undefined) damage.report(Object.assign(new Error(problem), { errcode: SQLITE_CORRUPT }))
    else if (failure === undefined) log.info({ path, tookMs }, 'the pages of the store were checked and are whole')
    else log.warn({ path, failure, advice: `sqlite3 ${path} "pragma quick_check"` }, 'the pages could not be checked')
  })
  return check
}
