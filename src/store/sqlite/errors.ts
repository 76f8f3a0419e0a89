/** Maps SQLite's error codes: which errors can be retried, and which are defects of the program. */
import { MoleculeError } from '../../errors.ts'

export const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

/** Primary result codes of a problem of the machine, not of the statement. */
const MACHINE_CODES: ReadonlyMap<number, string> = new Map([
  [5, 'the database is busy'],
  [6, 'a table is locked'],
  [7, 'out of memory'],
  [8, 'the database is read-only'],
  [10, 'the disk reported an error'],
  [SQLITE_FULL, 'the disk is full'],
  [14, 'the database file cannot be opened'],
])

export function isDiskFull(error: unknown): boolean {
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_FULL
}

/** A page that is no valid page, or a file that is no database. */
export function isDamage(error: unknown): boolean {
  const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

/** An error of the machine becomes `store_unavailable`. Other errors, such as of a constraint, stay as they are. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof MoleculeError) return error
  const code = (error as { errcode?: number }).errcode
  const reason = code === undefined ? undefined : MACHINE_CODES.get(code & 0xff)
  if (code !== undefined && reason === undefined) return error
  if (code === undefined && !(error instanceof Error && STORE_MESSAGES.test(error.message))) return error
  const message = `the store is unavailable: ${reason ?? (error as Error).message}`
  return new MoleculeError('store_unavailable', message, { retryable: true, cause: error })
}

/** Messages without a result code: two of `sqlite.ts`, and the one of node:sqlite for a closed handle. */
const STORE_MESSAGES = /store is closed|rolled back by the database|database is not open/
