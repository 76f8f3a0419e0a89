/**
 * A lane: a queue of writes for one connection. Operations that arrive while a group commits form the next group, so
 * the busier a lane is, the more operations share a COMMIT.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { GROUP_OPERATIONS_MAX, type Transaction } from '../store.ts'
import { unavailable } from './errors.ts'
import { commitGroup } from './group-commit.ts'
import type { ReconnectingLink } from './reconnecting-link.ts'
import type { PostgresOperation } from './run-alone.ts'

/** At the limit the database is seconds behind, and a write rejects with `store_unavailable`. */
const QUEUE_OPERATIONS_MAX = 10_000

export interface WriteLane {
  write<T>(transaction: () => Transaction<T>, key: string): Promise<T>
  /** Waits for the queued writes, then closes the connection. */
  close(): Promise<void>
}

export function createWriteLane(link: ReconnectingLink, clock: Clock): WriteLane {
  let queue: PostgresOperation[] = []
  let running: Promise<void> | undefined

  const run = async () => {
    // Calls from the same turn of the event loop share the first group.
    await setImmediate()
    while (queue.length > 0) await runGroup()
    running = undefined
  }
  const runGroup = async () => {
    try {
      const connection = await link.get()
      const left = await commitGroup(connection, queue.splice(0, GROUP_OPERATIONS_MAX), clock)
      if (left.length > 0) queue = [...left, ...queue]
    } catch (error) {
      for (const { reject } of queue.splice(0)) reject(error)
    }
  }
  return {
    write: (transaction, key) =>
      new Promise((resolve, reject) => {
        if (queue.length >= QUEUE_OPERATIONS_MAX)
          return reject(unavailable(`${queue.length} writes are already waiting`))
        queue.push({ key, transaction, resolve, reject })
        running ??= run()
      }),
    async close() {
      await running
      await link.close()
    },
  }
}
