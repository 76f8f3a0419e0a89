/** Wraps the inbox of a bridge and reports each turn's start, end and loss to the display and the heartbeat. */
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
  /** Another worker has taken over the message. */
  lost(key: LeaseKey): void
}

export function watchInbox(inbox: Inbox, watcher: InboxWatcher): Inbox {
  const running = new Set<string>()
  const reportLost = (key: LeaseKey) => {
    if (running.delete(leaseId(key))) watcher.lost(key)
  }
  const checkStanding = (key: LeaseKey, standing: LeaseStanding): LeaseStanding => {
    if (standing === 'stale') reportLost(key)
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
