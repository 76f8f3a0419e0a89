/** What both faces of the local inbox share: the store, who waits for work, who waits for news. */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Desks } from './desks.ts'
import type { KeepSession } from './outcome.ts'
import type { Watchers } from './watchers.ts'

export interface Office {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly desks: Desks
  readonly watchers: Watchers
  readonly keepSession: KeepSession
}
