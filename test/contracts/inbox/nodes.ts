/** More processes on the store of the contract: on a clock that the test moves, with writes that fail or wait. */
import type { LocalInbox } from '../../../src/inbox/local/local-inbox.ts'
import type { Store } from '../../../src/store/store.ts'
import { type ManualClock, manualClock } from '../../fakes/manual-clock.ts'
import { waitUntil } from '../../harness/wait.ts'
import type { InboxHarness } from './harness.ts'

const SWEEP_MS = 5000

/** A second process. Its timers run when the test moves the clock; the times of the store are not changed. */
export async function withNode(
  harness: InboxHarness,
  work: (node: LocalInbox, clock: ManualClock) => Promise<void>,
  store?: Store,
): Promise<void> {
  const clock = manualClock()
  const node = harness.newInbox(clock, store)
  try {
    await work(node, clock)
  } finally {
    node.close()
  }
}

/** The store, with a step before each write: it may throw, or hold the write until the test goes on. */
export const storeWith = ({ store }: InboxHarness, beforeWrite: () => unknown): Store => ({
  ...store,
  async write(transaction, lane) {
    await beforeWrite()
    return await store.write(transaction, lane)
  },
})

/** Sweeps again and again until the condition holds: one sweep may be busy with rows of other tests. */
export const sweepUntil = (clock: ManualClock, condition: () => Promise<boolean>, what: string): Promise<void> =>
  waitUntil(async () => {
    clock.advance(SWEEP_MS)
    return await condition()
  }, what)
