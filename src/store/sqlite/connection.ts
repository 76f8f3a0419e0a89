/** One connection to an embedded store: pragmas, `now_ms()`, and a cache of prepared statements. */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Log } from '../../log.ts'
import { isReadOnly, type Row, type Value } from '../store.ts'
import { createDamageLatch, type DamageLatch } from './damage.ts'

export interface SqliteConnection {
  readonly database: DatabaseSync
  readonly damage: DamageLatch
  /** Called with the duration of each commit. */
  readonly onCommit: (tookMs: number) => void
  nowMs(): bigint
  /** Prepares a text of the seam's SQL, once. */
  prepare(text: string): PreparedStatement
  /** Runs one text of the seam's SQL and returns its rows. */
  run(text: string, values: readonly Value[]): Row[]
}

export interface PreparedStatement {
  /** See `isReadOnly`. */
  readonly reads: boolean
  run(values: readonly Value[], nowMs: bigint): Row[]
}

/** A writer that meets a checkpoint of a reader waits this long; then the write fails with `store_unavailable`. */
const BUSY_MS = 5000

/** After a checkpoint SQLite cuts a larger write-ahead log to this size. */
export const WAL_BYTES_MAX = 64 * 1024 * 1024

export interface SqliteConnectionOptions {
  readonly path: string
  readonly nowMs: () => bigint
  readonly log?: Log | undefined
  readonly onCommit: (tookMs: number) => void
}

export function openConnection({ path, nowMs, log, onCommit }: SqliteConnectionOptions): SqliteConnection {
  // Otherwise the umask decides who can read the store. SQLite gives -wal and -shm the mode of this file.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path)
  // Works for a new file only, before its first page is written: later, free pages could not be released.
  database.exec('pragma auto_vacuum = incremental')
  database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma journal_mode = wal; pragma synchronous = full`)
  // Otherwise the log keeps the largest size it ever had.
  database.exec(`pragma journal_size_limit = ${WAL_BYTES_MAX}`)
  // Otherwise SQLite writes the pages from before a savepoint to a temporary file.
  database.exec('pragma temp_store = memory')
  const prepared = new Map<string, PreparedStatement>()
  const prepare = (text: string): PreparedStatement => {
    let known = prepared.get(text)
    if (known === undefined) {
      known = translate(database, text)
      prepared.set(text, known)
    }
    return known
  }
  return {
    database,
    damage: createDamageLatch(path, log),
    onCommit,
    nowMs,
    prepare,
    run: (text, values) => prepare(text).run(values, nowMs()),
  }
}

/**
 * Translates the seam's text. node:sqlite numbers positional parameters ?1, the seam $1. `now_ms()` becomes one more
 * parameter: as an SQL function it would cost 0.2 us for each mention. Rows come as arrays and get their column names
 * here: node:sqlite makes new name strings for every row, which is a third of the cost of a lookup.
 */
function translate(database: DatabaseSync, text: string): PreparedStatement {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  const time = `?${Math.max(0, ...numbers) + 1}`
  const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1').replaceAll('now_ms()', time))
  const usesTime = text.includes('now_ms()')
  const columns = statement.columns().map(({ name }) => name)
  statement.setReturnArrays(true)
  return {
    reads: isReadOnly(text),
    run(values, nowMs) {
      const rows = (usesTime ? statement.all(...values, nowMs) : statement.all(...values)) as unknown as Value[][]
      return rows.map((row) => toRow(columns, row))
    },
  }
}

function toRow(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {}
  for (const [index, name] of columns.entries()) row[name] = values[index] as Value
  return row
}
