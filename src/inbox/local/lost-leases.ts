/**
 * Recovers leases whose commit succeeded but whose answer was lost (a dropped database connection). The worker is
 * alive, so no takeover happens, and it does not know of the lease, so it never settles. A lease that is missing from
 * `held` in two sweeps is released: by then every answer that was on its way has arrived.
 */

import { findLeasesOf } from '../rows/lease.ts'
import { type LeaseKey, leaseId } from '../worker.ts'
import type { InboxContext } from './context.ts'

export type ReleaseLease = (key: LeaseKey) => void

/** Returns the check that every sweep runs. */
export function createLostLeaseCheck(
  { store, workerQueues, held }: InboxContext,
  releaseLease: ReleaseLease,
): () => Promise<void> {
  let suspected: ReadonlySet<string> = new Set()
  return async () => {
    const lost: LeaseKey[] = []
    for (const { worker } of workerQueues.all()) {
      const stored = await store.read(() => findLeasesOf(worker.id))
      lost.push(...stored.filter((key) => !held.has(leaseId(key))))
    }
    for (const key of lost) if (suspected.has(leaseId(key))) releaseLease(key)
    suspected = new Set(lost.map(leaseId))
  }
}
