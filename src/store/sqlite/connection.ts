/** One connection to an embedded store: pragmas, `now_ms()`, and every statement prepared once. */
import { DatabaseSync } from 'node:sqlite'
import { isReadOnly, type Row, type Value } from '../store.ts'

export interface SqliteConnection {
  readonly database: DatabaseSync
  nowMs(): bigint
  /** The statement for a text of the seam's SQL. */
  prepare(text: string): PreparedStatement
  /** Runs one text of the seam's SQL and gives its rows. */
  run(text: string, values: readonly Value[]): Row[]
}

export interface PreparedStatement {
  /** Whether it only reads, so that leaving it undone leaves nothing behind. */
  readonly reads: boolean
  run(values: readonly Value[], nowMs: bigint): Row[]
}

/** A writer that meets a reader's checkpoint waits this long before it gives up. */
const BUSY_MS = 5000

export function openConnection(path: string, nowMs: () => bigint): SqliteConnection {
  const database = new DatabaseSync(path)
  database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma journal_mode = wal; pragma synchronous = full`)
  // What pages were before a savepoint would else go to a temporary file.
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
  return { database, nowMs, prepare, run: (text, values) => prepare(text).run(values, nowMs()) }
}

/**
 * From the seam's text: node:sqlite numbers positional parameters as ?1, the seam as $1. `now_ms()` becomes one more
 * parameter, because a function of ours would be called back for every mention of it, 0.2 us each. Rows come as arrays
 * and are given their names here: node:sqlite makes every name anew for every row, a third of what a look-up costs.
 */
function translate(database: DatabaseSync, text: string): PreparedStatement {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  const time = `?${Math.max(0, ...numbers) + 1}`
  const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1').replaceAll('now_ms()', time))
  const asksTime = text.includes('now_ms()')
  const columns = statement.columns().map(({ name }) => name)
  statement.setReturnArrays(true)
  return {
    reads: isReadOnly(text),
    run(values, nowMs) {
      const rows = (asksTime ? statement.all(...values, nowMs) : statement.all(...values)) as unknown as Value[][]
      return rows.map((row) => toRow(columns, row))
    },
  }
}

function toRow(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {}
  for (const [index, name] of columns.entries()) row[name] = values[index] as Value
  return row
}
