/** The platform's database from outside, the same way for both engines: SQL text in, rows out. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'

export type DatabaseRow = Readonly<Record<string, string | number | null>>

export interface Database {
  rows(text: string): Promise<DatabaseRow[]>
  close(): Promise<void>
}

export interface DatabaseLocation {
  readonly dataDir: string
  /** `postgres://...`; unset = the embedded store of the data folder. */
  readonly database?: string | undefined
  /** Only while no platform runs. */
  readonly writable?: boolean
}

export async function openDatabase({ dataDir, database: url, writable = false }: DatabaseLocation): Promise<Database> {
  if (url === undefined) {
    const embedded = new DatabaseSync(join(dataDir, 'molecule.db'), { readOnly: !writable })
    return {
      rows: async (text) => embedded.prepare(text).all() as DatabaseRow[],
      close: async () => embedded.close(),
    }
  }
  const client = new Client({ connectionString: url })
  await client.connect()
  return {
    rows: async (text) => (await client.query(text)).rows,
    close: () => client.end(),
  }
}
