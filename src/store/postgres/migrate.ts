/**
 * Brings a PostgreSQL store to this program's schema, one transaction a migration. Under a lock that only one node can
 * hold: a second one that starts at the same time waits, and then finds nothing left to do.
 */
import { missingMigrations } from '../migrations.ts'
import type { Connector } from './connector.ts'

/** Any number that nobody else takes for an advisory lock of this database; ours spells "mole". */
const LOCK_KEY = 0x6d6f6c65
/** Large tables take their time; the node that waits for the lock waits as long. */
const MIGRATION_TIMEOUTS = { statementMs: 0, lockMs: 0, answerMs: 30 * 60_000 }

/**
 * The start of the current statement, so that one statement sees one time and the time may be looked up in an index,
 * which a clock read for each row may not. It never goes back within a transaction.
 */
const NOW_MS = `create or replace function now_ms() returns bigint language sql stable parallel safe
  return floor(extract(epoch from statement_timestamp()) * 1000)::bigint`

export async function migrate(connector: Connector): Promise<void> {
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
