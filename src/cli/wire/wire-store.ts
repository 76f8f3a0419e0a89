/** Opens the store of a data folder for `wire.ts`: its SQLite file, or the PostgreSQL database of the configuration. */
import { join } from 'node:path'
import { systemClock } from '../../clock.ts'
import type { PlatformConfig } from '../../config/config.ts'
import type { MaskingLog } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import { openSqlite } from '../../store/sqlite/sqlite.ts'
import type { Store } from '../../store/store.ts'
import { makeFoldersRelative } from '../../workspaces/homes/stored-folders.ts'
import { holdCopy, type SettledFolder } from '../data-folder/folder-standing.ts'
import { writeHostFolder } from '../data-folder/host-id.ts'
import { refuseLostStore } from '../data-folder/lost-store.ts'

export interface WireStoreOptions {
  readonly config: Pick<PlatformConfig, 'dataDir' | 'database'>
  readonly folder: SettledFolder
  readonly log: MaskingLog
  readonly metrics: Metrics
}

/** The store, ready for this data folder. */
export async function wireStore(options: WireStoreOptions): Promise<Store> {
  const { config, folder, log, metrics } = options
  const { dataDir, database: url } = config
  const path = join(dataDir, 'molecule.db')
  const store =
    url === undefined ? openSqlite({ path, clock: systemClock, log, metrics }) : await openDatabase(url, options)
  try {
    await refuseLostStore({ store, dataDir, storeName: url === undefined ? `the store ${path}` : 'the database' })
    if (folder.standing === 'copy') await holdCopy(store)
    await makeFoldersRelative(store, [dataDir, ...(folder.formerPath === undefined ? [] : [folder.formerPath])])
    // Written last: a copy that is not held yet must be found to be one at the next start too.
    writeHostFolder(dataDir, folder.host)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Loads the PostgreSQL client only when it is used: most installations have none. */
async function openDatabase(url: string, { folder: { host }, log, metrics }: WireStoreOptions): Promise<Store> {
  log.hide(url)
  const { password, searchParams } = new URL(url)
  log.hide(decodeURIComponent(password))
  log.hide(searchParams.get('password') ?? '')
  const { openPostgres } = await import('../../store/postgres/postgres.ts')
  return await openPostgres({ url, clock: systemClock, log, metrics, host })
}
