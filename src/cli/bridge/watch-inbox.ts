/** Looks over the runtime's shoulder: tells whoever shows or reports it what passes between runtime and inbox. */
import {
  type Directive,
  type Inbox,
  type Lease,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type Outcome,
} from '../../inbox/inbox.ts'

export interface InboxWatcher {
  begun(lease: Lease): void
  ended(key: LeaseKey, outcome: Outcome, answer: 'settled' | 'stale'): void
  /** Another worker has taken it over. */
  lost(key: LeaseKey): void
}

export function watchInbox(inbox: Inbox, watcher: InboxWatcher): Inbox {
  const running = new Set<string>()
  const gone = (key: LeaseKey) => {
    if (running.delete(leaseId(key))) watcher.lost(key)
  }
  const checkStanding = (key: LeaseKey, standing: LeaseStanding): LeaseStanding => {
    if (standing === 'stale') gone(key)
    return standing
  }
  return {
    ...inbox,
    async *leases(worker, signal): AsyncIterable<Directive> {
      for await (const directive of inbox.leases(worker, signal)) {
        if (directive.type === 'lease') {
          running.add(leaseId(directive.lease))
          watcher.begun(directive.lease)
        }
        yield directive
      }
    },
    async extend(keys) {
      const standings = await inbox.extend(keys)
      return standings.map((standing, index) => checkStanding(keys[index] as LeaseKey, standing))
    },
    append: async (key, events) => checkStanding(key, await inbox.append(key, events)),
    async settle(key, outcome, unsent) {
      const answer = await inbox.settle(key, outcome, unsent)
      if (running.delete(leaseId(key))) watcher.ended(key, outcome, answer)
      return answer
    },
  }
}
