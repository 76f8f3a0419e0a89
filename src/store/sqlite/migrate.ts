/** Brings an embedded store to the schema of this program, one transaction per migration, after a copy of the store. */
import { missingMigrations } from '../migrations.ts'
import type { SqliteConnection } from './connection.ts'
import { copyAside } from './copy-aside.ts'

export function migrate({ database, run }: SqliteConnection, path: string): void {
  database.exec('create table if not exists schema_version (version integer not null)')
  const [row] = run('select max(version) as version from schema_version', [])
  const current = Number(row?.['version'] ?? 0)
  const missing = missingMigrations(current)
  if (current > 0 && missing.length > 0) copyAside(path, current)
  for (const [version, text] of missing) {
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
