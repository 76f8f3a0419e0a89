/**
 * Checks what slows the store down or wastes its disk: slow commits that the log notes, a write-ahead log that another
 * process holds, and free pages that are not given back. It only reads.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SLOW_COMMIT_TEXT } from '../../store/slow-commits.ts'
import { WAL_BYTES_MAX } from '../../store/sqlite/connection.ts'
import { readPages } from '../../store/sqlite/upkeep.ts'
import { LOG_FILE } from '../data-folder/log-format.ts'
import { formatBytes } from '../terminal/output.ts'
import type { Finding } from './finding.ts'

/** The end of the log that is searched. */
const LOG_BYTES_MAX = 1024 * 1024
/** Less is not worth a stop of the platform. */
const FREE_BYTES_NOTED = 64 * 1024 * 1024
const FREE_SHARE_NOTED = 0.25

/** Nothing for a store that needs no attention. */
export function examineStoreFiles(dataDir: string): Finding[] {
  const path = join(dataDir, 'molecule.db')
  return [examineCommits(dataDir), examineWal(path), examineFreePages(path)].filter((finding) => finding !== undefined)
}

function examineCommits(dataDir: string): Finding | undefined {
  const lines = readEnd(join(dataDir, LOG_FILE))
    .split('\n')
    .filter((line) => line.includes(SLOW_COMMIT_TEXT))
  const last = lines.at(-1)
  if (last === undefined) return undefined
  const { tookMs, time } = parseLine(last)
  const text = `slow: a commit took ${tookMs ?? 'more than 100'} ms${time === undefined ? '' : ` at ${time}`}`
  const remedy = 'put the data folder on a faster disk, or end what else writes to this one'
  return { area: 'disk', name: 'store', verdict: 'note', text, remedy }
}

function parseLine(line: string): { readonly tookMs?: unknown; readonly time?: unknown } {
  try {
    return JSON.parse(line) as object
  } catch {
    // The first line of the part that was read may be cut.
    return {}
  }
}

function readEnd(path: string): string {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size === 0) return ''
  const bytes = Buffer.alloc(Math.min(size, LOG_BYTES_MAX))
  const file = openSync(path, 'r')
  try {
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, size - bytes.length))
  } finally {
    closeSync(file)
  }
}

function examineWal(path: string): Finding | undefined {
  const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (bytes <= WAL_BYTES_MAX) return undefined
  const text = `the write-ahead log has ${formatBytes(bytes)}: another process reads the store and keeps it from shrinking`
  const remedy = `end what has ${path} open, such as a backup or a shell of sqlite3 ("lsof ${path}" names it)`
  return { area: 'store', name: 'write-ahead log', verdict: 'note', text, remedy }
}

/** A damaged store is reported by another check. */
function examineFreePages(path: string): Finding | undefined {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined
  try {
    const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 })
    try {
      const { pages, freePages, pageBytes, isIncremental } = readPages(database)
      const bytes = freePages * pageBytes
      if (isIncremental || bytes < FREE_BYTES_NOTED || freePages < pages * FREE_SHARE_NOTED) return undefined
      const text = `${formatBytes(bytes)} of molecule.db are free and stay with it; new messages use them`
      const remedy = `to shrink it, stop the platform and run: sqlite3 ${path} "pragma auto_vacuum = incremental; vacuum"`
      return { area: 'store', name: 'free pages', verdict: 'note', text, remedy }
    } finally {
      database.close()
    }
  } catch {
    return undefined
  }
}
