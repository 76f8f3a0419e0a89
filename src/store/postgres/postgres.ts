/**
 * The engine for many nodes: PostgreSQL. Writes go through a few lanes, each one connection with group commit, chosen
 * by key, so that the writes of a workspace meet each other in a queue and not at a row lock. Reads have connections
 * of their own. A database that cannot be reached is told to every caller at once and comes back by itself.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../store.ts'
import { createConnector } from './connector.ts'
import { unavailable } from './errors.ts'
import { createHints } from './hints.ts'
import { migrate } from './migrate.ts'
import { createReaders } from './readers.ts'
import { createReconnectingLink } from './reconnecting-link.ts'
import { createWriteLane, type WriteLane } from './write-lane.ts'

/** Connections are made when first needed; with the lane without a key and the hints a node has at most ten. */
const LANES_DEFAULT = 4
const READERS_DEFAULT = 4

export interface PostgresOptions {
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  /** Connections for writes with a key. */
  readonly lanes?: number
  readonly readers?: number
}

/** Rejects with `bad_config` for an address that cannot be read, with `store_unavailable` when nobody answers there. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, clock, log, lanes = LANES_DEFAULT, readers: readerCount = READERS_DEFAULT } = options
  const connector = createConnector(url, clock)
  await migrate(connector)
  const hints = createHints({ connector, clock, log })
  try {
    await hints.start()
  } catch (error) {
    await hints.close()
    throw error
  }
  const link = (name: string) => createReconnectingLink({ connector, clock, log, name })
  // Writes without a key may touch anything: they share a transaction with none but each other, one after the other.
  const common = createWriteLane(link('writes without a key'), clock)
  const keyed = Array.from({ length: lanes }, (_, index) => createWriteLane(link(`writes ${index + 1}`), clock))
  const readers = createReaders(Array.from({ length: readerCount }, (_, index) => link(`reads ${index + 1}`)))
  const close = async () => {
    await Promise.all([common, ...keyed, readers].map((part) => part.close()))
    await hints.close()
  }
  let closing: Promise<void> | undefined
  return {
    engine: 'postgres',
    async write(transaction, key) {
      if (closing !== undefined) throw unavailable('the store is closed')
      if (key === undefined) return await common.write(transaction, '')
      return await laneOf(keyed, key).write(transaction, key)
    },
    async read(transaction) {
      if (closing !== undefined) throw unavailable('the store is closed')
      return await readers.read(transaction)
    },
    notify(workspaceIds) {
      if (closing === undefined) hints.notify(workspaceIds)
    },
    listen: (callback) => hints.listen(callback),
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** FNV-1a: the same key always meets the same lane. */
function laneOf(lanes: readonly WriteLane[], key: string): WriteLane {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return lanes[(hash >>> 0) % lanes.length] as WriteLane
}
