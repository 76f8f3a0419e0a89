/**
 * The schema, forward only: each migration is applied once, in order, and its number is stored. All engines run the
 * same text, so it uses types that all of them understand (`bytea` is a plain blob to SQLite).
 */
import { MoleculeError } from '../errors.ts'
import { schema0001 } from './migrations/0001-first.ts'
import { schema0002 } from './migrations/0002-tokens.ts'
import { schema0003 } from './migrations/0003-workspaces.ts'
import { schema0004 } from './migrations/0004-push.ts'
import { schema0005 } from './migrations/0005-secrets.ts'
import { schema0006 } from './migrations/0006-usage.ts'
import { schema0007 } from './migrations/0007-fewer-indexes.ts'
import { schema0008 } from './migrations/0008-begun.ts'
import { schema0009 } from './migrations/0009-readiness.ts'
import { schema0010 } from './migrations/0010-sign-off.ts'
import { schema0011 } from './migrations/0011-conversation-tokens.ts'
import { schema0012 } from './migrations/0012-upkeep-clock.ts'

const MIGRATIONS: readonly string[] = [
  schema0001,
  schema0002,
  schema0003,
  schema0004,
  schema0005,
  schema0006,
  schema0007,
  schema0008,
  schema0009,
  schema0010,
  schema0011,
  schema0012,
]

/** The migrations after version `current`, as [version, text]. Throws for a store of a newer Molecule. */
export function missingMigrations(current: number): [number, string][] {
  if (current > MIGRATIONS.length) {
    const message = `the store was written by a newer Molecule (schema ${current}, this program knows ${MIGRATIONS.length}): update Molecule`
    throw new MoleculeError('bad_config', message)
  }
  return MIGRATIONS.map((text, index): [number, string] => [index + 1, text]).slice(current)
}
