/** One process with an inbox on a store under test. Its sessions are stored as the platform stores them. */
import type { Clock } from '../../../src/clock.ts'
import { createLocalInbox, type LocalInbox } from '../../../src/inbox/local/local-inbox.ts'
import { silentLog } from '../../../src/log.ts'
import type { Store } from '../../../src/store/store.ts'
import { keepSession } from '../../../src/workspaces/sessions.ts'

export function openLocalInbox(store: Store, clock: Clock, host = 'host'): LocalInbox {
  return createLocalInbox({
    store,
    clock,
    host,
    log: silentLog,
    keepSession: (key, token) => keepSession(host, key, token),
    keepSessionOn: (place) => (key, token) => keepSession(place, key, token),
  })
}
