/**
 * Recovers leases whose commit succeeded but whose answer was lost (a dropped database connection). The worker is
 * alive, so no takeover happens, and it does not know of the lease, so it never settles. A lease that is missing from
 * `held` in two sweeps is released: by then every answer that was on its way has arrived.
 */
import { findLeasesOf } from '../rows/lease.ts'
import { type LeaseKey, leaseId } from '../worker.ts'
import type { InboxContext } from './context.ts'
import { releaseLease } from './directives.ts'

/** Returns the check that every sweep runs. */
export function createLostLeaseCheck(context: InboxContext): () => Promise<void> {
  const { store, workerQueues, held } = context
  let suspected: ReadonlySet<string> = new Set()
  return async () => {
    const lost: LeaseKey[] = []
    for (const { worker } of workerQueues.all()) {
      const stored = await store.read(() => findLeasesOf(worker.id))
      lost.push(...stored.filter((key) => !held.has(leaseId(key))))
    }
    for (const key of lost) if (suspected.has(leaseId(key))) releaseLease(context, key)
    suspected = new Set(lost.map(leaseId))
  }
}
