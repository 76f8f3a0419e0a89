/** Stores on one database, a table to write to, and checks of failures, for the tests of the PostgreSQL engine. */
import type { TestContext } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { MoleculeError } from '../../../src/errors.ts'
import { silentLog } from '../../../src/log.ts'
import { openPostgres, type PostgresOptions } from '../../../src/store/postgres/postgres.ts'
import { type Store, sql } from '../../../src/store/store.ts'
import type { TestPostgres } from '../../harness/stores/postgres.ts'

export type GetServer = () => TestPostgres

/** A store that is closed when the test ends. */
export async function openStore(t: TestContext, url: string, options: Partial<PostgresOptions> = {}): Promise<Store> {
  const store = await openPostgres({ url, clock: systemClock, log: silentLog, ...options })
  t.after(() => store.close())
  return store
}

/** Several nodes on one fresh database, with an empty table of notes. */
export async function openNodes(t: TestContext, server: TestPostgres, count: number): Promise<Store[]> {
  const url = await server.url()
  const stores: Store[] = []
  for (let node = 0; node < count; node++) stores.push(await openStore(t, url))
  await stores[0]?.write(function* () {
    yield* sql(`create table notes (id text primary key, body text not null default '')`)
  })
  return stores
}

export const addNote = (store: Store, id: string, body = ''): Promise<void> =>
  store.write(function* () {
    yield* sql('insert into notes (id, body) values ($1, $2)', [id, body])
  })

export const readNote = (store: Store, id: string): Promise<string | undefined> =>
  store.read(function* () {
    const [row] = yield* sql<{ body: string }>('select body from notes where id = $1', [id])
    return row?.body
  })

export const isUnavailable = (error: unknown): boolean =>
  error instanceof MoleculeError && error.code === 'store_unavailable' && error.retryable

/** Keeps a transaction open for a while. */
export function* pause(seconds: number) {
  yield* sql(`select 1 as waited from (select pg_sleep(${seconds})) as pause`)
}
