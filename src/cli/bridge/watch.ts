/** Looks over the runtime's shoulder: tells whoever shows or reports it what passes between runtime and inbox. */
import type { Handout, Inbox, Lease, LeaseKey, Outcome, Standing } from '../../inbox/inbox.ts'

export interface Watcher {
  begun(lease: Lease): void
  ended(key: LeaseKey, outcome: Outcome, answer: 'settled' | 'stale'): void
  /** Another worker has taken it over. */
  lost(key: LeaseKey): void
}

export function watchInbox(inbox: Inbox, watcher: Watcher): Inbox {
  const running = new Set<string>()
  const gone = (key: LeaseKey) => {
    if (running.delete(nameOf(key))) watcher.lost(key)
  }
  const heard = (key: LeaseKey, standing: Standing): Standing => {
    if (standing === 'stale') gone(key)
    return standing
  }
  return {
    ...inbox,
    async *leases(worker, signal): AsyncIterable<Handout> {
      for await (const handout of inbox.leases(worker, signal)) {
        if (handout.type === 'lease') {
          running.add(nameOf(handout.lease))
          watcher.begun(handout.lease)
        }
        yield handout
      }
    },
    async extend(keys) {
      const standings = await inbox.extend(keys)
      return standings.map((standing, index) => heard(keys[index] as LeaseKey, standing))
    },
    append: async (key, events) => heard(key, await inbox.append(key, events)),
    async settle(key, outcome, unsent) {
      const answer = await inbox.settle(key, outcome, unsent)
      if (running.delete(nameOf(key))) watcher.ended(key, outcome, answer)
      return answer
    },
  }
}

const nameOf = ({ messageId, epoch }: LeaseKey): string => `${messageId}.${epoch}`
