/**
 * Brings a PostgreSQL store to the schema of this program, one transaction per migration. It holds an advisory lock: a
 * second node that starts at the same time waits for it and then finds no migration left.
 */
import { missingMigrations } from '../migrations.ts'
import type { Connector } from './connector.ts'

/** Any number that no other program uses as an advisory lock of this database; this one spells "mole". */
const LOCK_KEY = 0x6d6f6c65
/** A migration of a large table may be slow, and another node waits for the lock as long. */
const MIGRATION_TIMEOUTS = { statementMs: 0, lockMs: 0, answerMs: 30 * 60_000 }

/**
 * The start time of the current statement: a statement sees one time, and the planner can use an index on it, which it
 * cannot with a clock that is read for each row. It never goes back within a transaction.
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
