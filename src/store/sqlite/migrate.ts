/** Brings an embedded store to the schema of this program, one transaction per migration. */
import { missingMigrations } from '../migrations.ts'
import type { SqliteConnection } from './connection.ts'

export function migrate({ database, run }: SqliteConnection): void {
  database.exec('create table if not exists schema_version (version integer not null)')
  const [row] = run('select max(version) as version from schema_version', [])
  for (const [version, text] of missingMigrations(Number(row?.['version'] ?? 0))) {
    database.exec('begin immediate')
    try {
      database.exec(text)
      run('insert into schema_version (version) values ($1)', [version])
      database.exec('commit')
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      throw error
    }
  }
}
