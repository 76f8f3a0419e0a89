/**
 * The engine for many nodes: PostgreSQL. Writes go through a few lanes, each one connection with group commit. The key
 * chooses the lane, so that writes of one workspace wait in a queue and not for a row lock. Reads have their own
 * connections. While the database cannot be reached, every call rejects at once; the connections recover by themselves.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import { missingMigrations } from '../migrations.ts'
import type { Store } from '../store.ts'
import type { Connector } from './connector.ts'
import { createConnector } from './connector.ts'
import { unavailable } from './errors.ts'
import { createHints } from './hints.ts'
import { createHostLock } from './host-lock.ts'
import { createReaders } from './readers.ts'
import { createReconnectingLink } from './reconnecting-link.ts'
import { createWriteLane, type WriteLane } from './write-lane.ts'

/** Connections are opened on first use. With the lane without a key and the hints, a node has at most ten. */
const LANES_DEFAULT = 4
const READERS_DEFAULT = 4

export interface PostgresOptions {
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  /** The id of the data folder. No second folder with it may use the database; unset = not checked. */
  readonly host?: string
  /** Counts slow commits. */
  readonly metrics?: Pick<Metrics, 'count'>
  /** Connections for writes with a key. */
  readonly lanes?: number
  readonly readers?: number
}

/**
 * Rejects with `bad_config` for an invalid address, with `store_unavailable` when no server answers there, with `in_use`
 * when another platform with the same host id uses the database.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, clock, log, lanes = LANES_DEFAULT, readers: readerCount = READERS_DEFAULT } = options
  const connector = createConnector(url, options)
  await migrate(connector)
  const hostLock = options.host === undefined ? undefined : createHostLock({ host: options.host, clock, log })
  const hints = createHints({ connector, clock, log, prepare: hostLock })
  try {
    await hints.start()
  } catch (error) {
    await hints.close()
    throw error
  }
  const link = (name: string) => createReconnectingLink({ connector, clock, log, name })
  // Writes without a key may touch any row: they share a transaction only with each other, and run one after the other.
  const common = createWriteLane(link('writes without a key'), clock)
  const keyed = Array.from({ length: lanes }, (_, index) => createWriteLane(link(`writes ${index + 1}`), clock))
  const readers = createReaders(Array.from({ length: readerCount }, (_, index) => link(`reads ${index + 1}`)))
  const close = async () => {
    await Promise.all([common, ...keyed, readers].map((part) => part.close()))
    await hints.close()
  }
  let closing: Promise<void> | undefined
  return {
    engine: 'postgres',
    async write(transaction, key) {
      if (closing !== undefined) throw unavailable('the store is closed')
      if (key === undefined) return await common.write(transaction, '')
      return await laneOf(keyed, key).write(transaction, key)
    },
    async read(transaction) {
      if (closing !== undefined) throw unavailable('the store is closed')
      return await readers.read(transaction)
    },
    notify(workspaceIds) {
      if (closing === undefined) hints.notify(workspaceIds)
    },
    listen: (callback) => hints.listen(callback),
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** FNV-1a: the same key always gets the same lane. */
function laneOf(lanes: readonly WriteLane[], key: string): WriteLane {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return lanes[(hash >>> 0) % lanes.length] as WriteLane
}

/** Any number that no other program uses as an advisory lock of this database; this one spells "mole". */
const LOCK_KEY = 0x6d6f6c65
/** A migration of a large table may be slow, and another node waits for the lock as long. */
const MIGRATION_TIMEOUTS = { statementMs: 0, lockMs: 0, answerMs: 30 * 60_000 }

/**
 * The start time of the current statement: a statement sees one time, and the planner can use an index on it, which it
 * cannot with a clock that is read for each row. It never goes back within a transaction.
 */
export const NOW_MS = `create or replace function now_ms() returns bigint language sql stable parallel safe
  return floor(extract(epoch from statement_timestamp()) * 1000)::bigint`

/**
 * Brings the store to the schema of this program, one transaction per migration. It holds an advisory lock: a second
 * node that starts at the same time waits for it and then finds no migration left.
 */
async function migrate(connector: Connector): Promise<void> {
  const connection = await connector.connect(MIGRATION_TIMEOUTS)
  try {
    await connection.control(`select pg_advisory_lock(${LOCK_KEY})`)
    await connection.control('create table if not exists schema_version (version integer not null)')
    const [rows] = await connection.send([{ text: 'select max(version) as version from schema_version', values: [] }])
    const missing = missingMigrations(Number(rows?.[0]?.['version'] ?? 0))
    if (missing.length > 0) await connection.control(NOW_MS)
    for (const [version, text] of missing) {
      await connection.control(`begin; ${text}; insert into schema_version (version) values (${version}); commit`)
    }
  } finally {
    await connection.close()
  }
}
