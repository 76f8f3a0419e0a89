/** One connection to an embedded store: pragmas, `now_ms()`, and every statement prepared once. */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Row, Value } from '../store.ts'

export interface Connection {
  readonly database: DatabaseSync
  /** Runs one statement of the seam's SQL and gives its rows. */
  run(text: string, values: readonly Value[]): Row[]
  /** Whether it only reads, so that leaving it undone leaves nothing behind. */
  isReading(text: string): boolean
}

/** A writer that meets a reader's checkpoint waits this long before it gives up. */
const BUSY_MS = 5000

export function connect(path: string, nowMs: () => bigint): Connection {
  const database = new DatabaseSync(path)
  database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma journal_mode = wal; pragma synchronous = full`)
  // What pages were before a savepoint would else go to a temporary file.
  database.exec('pragma temp_store = memory')
  database.function('now_ms', nowMs)
  const prepared = new Map<string, Prepared>()
  const prepare = (text: string): Prepared => {
    let known = prepared.get(text)
    if (known === undefined) {
      // node:sqlite numbers positional parameters as ?1; the seam's text has $1.
      const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
      known = { statement, reads: /^\s*select\b/i.test(text) }
      prepared.set(text, known)
    }
    return known
  }
  return {
    database,
    run: (text, values) => prepare(text).statement.all(...values) as Row[],
    isReading: (text) => prepare(text).reads,
  }
}

interface Prepared {
  readonly statement: StatementSync
  readonly reads: boolean
}
