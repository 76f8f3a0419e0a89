/**
 * Keeps the files of the embedded store small. The write-ahead log shrinks at a checkpoint, which another process that
 * reads the store can prevent. Rows that retention deleted leave free pages, which go back to the system in slices.
 *
 * Invariant: one call takes some milliseconds, because it holds the process.
 */
import { statSync } from 'node:fs'
import { type Log, silentLog } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import { type SqliteConnection, WAL_BYTES_MAX } from './connection.ts'

/** Measured: 200 pages take 19 to 51 ms with their commit. */
const SLICE_PAGES_MAX = 50
/** As many free pages stay, because new messages use them soon. */
const FREE_SHARE_KEPT = 0.1

/** Counts the checks that found the log too large because another process reads the store. */
const WAL_HELD = 'molecule_store_wal_held_total'

export interface SqliteUpkeepOptions {
  readonly path: string
  readonly log?: Log | undefined
  readonly metrics?: Pick<Metrics, 'count'> | undefined
}

/** One call does a slice of the work. It returns true while there is more to do. */
export function createSqliteUpkeep(
  connection: SqliteConnection,
  { path, log = silentLog, metrics }: SqliteUpkeepOptions,
): () => boolean {
  let isHeld = false
  const checkWal = () => {
    const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
    if (bytes <= WAL_BYTES_MAX) {
      if (isHeld) log.info({ bytes }, 'the write-ahead log of the store is small again')
      isHeld = false
      return
    }
    if (!isEmptied(connection)) {
      metrics?.count(WAL_HELD)
      const advice = 'end the program that has the store open, such as a backup or a shell of sqlite3'
      if (!isHeld) log.warn({ path, bytes, advice }, 'the write-ahead log of the store grows: another process reads it')
      isHeld = true
    }
  }
  return () => {
    checkWal()
    return releasePages(connection)
  }
}

/** Does not wait for the reader: it may read for hours, and the whole process would wait with it. */
function isEmptied({ database }: SqliteConnection): boolean {
  const timeout = database.prepare('pragma busy_timeout').get()?.['timeout']
  database.exec('pragma busy_timeout = 0')
  try {
    return database.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'] === 0
  } finally {
    database.exec(`pragma busy_timeout = ${timeout}`)
  }
}

/** A store that was made before schema 28 has another format, in which pages cannot be released: `molecule doctor` says how. */
function releasePages({ database }: SqliteConnection): boolean {
  const { freePages, pages, isIncremental } = readPages(database)
  const surplus = Math.floor(freePages - pages * FREE_SHARE_KEPT)
  if (!isIncremental || surplus <= 0) return false
  database.exec(`pragma incremental_vacuum(${Math.min(surplus, SLICE_PAGES_MAX)})`)
  return surplus > SLICE_PAGES_MAX
}

export interface StorePages {
  readonly pages: number
  readonly freePages: number
  readonly pageBytes: number
  /** Whether free pages can be released one by one. */
  readonly isIncremental: boolean
}

export function readPages(database: SqliteConnection['database']): StorePages {
  const read = (name: string) => Number(database.prepare(`pragma ${name}`).get()?.[name] ?? 0)
  const INCREMENTAL = 2
  return {
    pages: read('page_count'),
    freePages: read('freelist_count'),
    pageBytes: read('page_size'),
    isIncremental: read('auto_vacuum') === INCREMENTAL,
  }
}
