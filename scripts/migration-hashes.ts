/**
 * Refuses an edited migration; a part of `npm run check`. A merged migration has run in the stores of users: a change of
 * its text reaches new stores only, and then old and new stores differ. `--add` records migrations that are new. No
 * command changes a recorded hash.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingMigrations } from '../src/store/migrations.ts'

/** By the number of the migration: the SHA-256 of its SQL. */
export type MigrationHashes = Readonly<Record<string, string>>
type Migration = readonly [number, string]

const LIST = 'src/store/migration-hashes.json'
const ADD = 'npx node scripts/migration-hashes.ts --add'

/** One sentence for each migration that was edited, removed or not recorded. */
export function checkMigrations(recorded: MigrationHashes, migrations: readonly Migration[]): string[] {
  const known = new Set(migrations.map(([version]) => String(version)))
  const removed = Object.keys(recorded).filter((version) => !known.has(version))
  return [
    ...removed.map((version) => `migration ${version} is in ${LIST} and no longer in migrations.ts: put it back`),
    ...migrations.flatMap(([version, text]) => problemOf(version, recorded[version], text)),
  ]
}

/** The recorded hashes and those of new migrations. Those of edited migrations stay. */
export function addMigrations(recorded: MigrationHashes, migrations: readonly Migration[]): MigrationHashes {
  return { ...Object.fromEntries(migrations.map(([version, text]) => [version, hashOf(text)])), ...recorded }
}

function problemOf(version: number, recorded: string | undefined, text: string): string[] {
  if (recorded === undefined) return [`migration ${version} is new: record it with ${ADD}`]
  if (recorded === hashOf(text)) return []
  return [`migration ${version} was edited after it was recorded: undo that, and put the change into a new migration`]
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

if (import.meta.main) {
  const path = join(import.meta.dirname, '..', LIST)
  const migrations = missingMigrations(0)
  let recorded = JSON.parse(readFileSync(path, 'utf8')) as MigrationHashes
  if (process.argv.includes('--add')) {
    recorded = addMigrations(recorded, migrations)
    writeFileSync(path, `${JSON.stringify(recorded, null, 2)}\n`)
  }
  const problems = checkMigrations(recorded, migrations)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
}
