/** One connection to an embedded store: pragmas, `now_ms()`, and every statement prepared once. */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Row, Value } from '../store.ts'

export interface Connection {
  readonly database: DatabaseSync
  /** Runs one statement of the seam's SQL and gives its rows. */
  run(text: string, values: readonly Value[]): Row[]
}

/** A writer that meets a reader's checkpoint waits this long before it gives up. */
const BUSY_MS = 5000

export function connect(path: string, nowMs: () => bigint): Connection {
  const database = new DatabaseSync(path)
  database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma journal_mode = wal; pragma synchronous = full`)
  database.function('now_ms', nowMs)
  const prepared = new Map<string, StatementSync>()
  return {
    database,
    run(text, values) {
      let statement = prepared.get(text)
      if (statement === undefined) {
        // node:sqlite numbers positional parameters as ?1; the seam's text has $1.
        statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
        prepared.set(text, statement)
      }
      return statement.all(...values) as Row[]
    },
  }
}
