/**
 * Stores of released schemas, kept as text: `schema-<number>.jsonl`. Each line is a header, a row of a table, an answer
 * that the platform of that release gave, or a message that it had accepted. One file serves both engines.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingMigrations } from '../../src/store/migrations.ts'
import { NOW_MS } from '../../src/store/postgres/postgres.ts'

export type ReleasedValue = string | number | null | { readonly hex: string }

/** What the platform of that release answered: the status, and texts that were in it. */
export interface ReleasedAnswer {
  readonly get: string
  readonly status: number
  readonly has: readonly string[]
}

/** A message that the platform of that release accepted, with its task and its answer. */
export interface ReleasedMessage {
  readonly workspaceId: string
  readonly message: object
  readonly taskId: string
  readonly reply: string
}

export type ReleasedLine =
  | { readonly schema: number; readonly madeAtMs: number }
  | { readonly table: string; readonly row: Readonly<Record<string, ReleasedValue>> }
  | ReleasedAnswer
  | ReleasedMessage

/** Stands for the data folder, whose path is another one on each machine. */
export const DATA_FOLDER = '{data folder}'
/** A number as large as this is a time in milliseconds. */
const TIME_MS_MIN = 1e12

export interface ReleasedStore {
  readonly answers: readonly ReleasedAnswer[]
  readonly messages: readonly ReleasedMessage[]
  /** The statements that make the store. All times move so that it seems to be written just now: nothing has expired. */
  statements(engine: 'sqlite' | 'postgres', dataDir: string): string
}

function readStore(text: string): ReleasedStore {
  const lines: ReleasedLine[] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { schema, madeAtMs } = lines.find((line) => 'schema' in line) ?? { schema: 0, madeAtMs: 0 }
  const rows = lines.filter((line) => 'table' in line)
  return {
    answers: lines.filter((line) => 'get' in line),
    messages: lines.filter((line) => 'message' in line),
    statements(engine, dataDir) {
      const shiftMs = Date.now() - madeAtMs
      const literal = (value: ReleasedValue): string => {
        if (value === null) return 'null'
        if (typeof value === 'number') return String(value >= TIME_MS_MIN ? value + shiftMs : value)
        if (typeof value === 'object') return engine === 'sqlite' ? `x'${value.hex}'` : `'\\x${value.hex}'::bytea`
        return `'${value.replaceAll(DATA_FOLDER, dataDir).replaceAll("'", "''")}'`
      }
      const migrations = missingMigrations(0).slice(0, schema)
      return [
        ...(engine === 'postgres' ? [`${NOW_MS};`] : []),
        'create table schema_version (version integer not null);',
        ...migrations.map(([version, sql]) => `${sql}; insert into schema_version (version) values (${version});`),
        // Some migrations plant a row.
        ...[...new Set(rows.map(({ table }) => table))].map((table) => `delete from ${table};`),
        ...rows.map(
          ({ table, row }) =>
            `insert into ${table} (${Object.keys(row)}) values (${Object.values(row).map(literal).join(', ')});`,
        ),
      ].join('\n')
    },
  }
}

/** All released stores, by the name of their file. */
export const releasedStores = (): Map<string, ReleasedStore> =>
  new Map(
    globSync('*.jsonl', { cwd: import.meta.dirname })
      .sort()
      .map((name) => [name, readStore(readFileSync(join(import.meta.dirname, name), 'utf8'))]),
  )
