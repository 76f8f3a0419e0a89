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
  const prepared = new Map<string, Prepared>()
  const prepare = (text: string): Prepared => {
    let known = prepared.get(text)
    if (known === undefined) {
      known = translate(database, text)
      prepared.set(text, known)
    }
    return known
  }
  return {
    database,
    run(text, values) {
      const { statement, asksTime } = prepare(text)
      return (asksTime ? statement.all(...values, nowMs()) : statement.all(...values)) as Row[]
    },
    isReading: (text) => prepare(text).reads,
  }
}

interface Prepared {
  readonly statement: StatementSync
  /** The time is its last parameter. */
  readonly asksTime: boolean
  readonly reads: boolean
}

/**
 * From the seam's text: node:sqlite numbers positional parameters as ?1, the seam as $1. `now_ms()` becomes one more
 * parameter, because a function of ours would be called back for every mention of it, 0.2 us each.
 */
function translate(database: DatabaseSync, text: string): Prepared {
  const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
  const time = `?${Math.max(0, ...numbers) + 1}`
  const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1').replaceAll('now_ms()', time))
  return { statement, asksTime: text.includes('now_ms()'), reads: /^\s*select\b/i.test(text) }
}
