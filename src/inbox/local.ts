/**
 * The inbox of this process: both faces of the seam over one store. The transactions are in the files beside it.
 * Memory here is only advice: if all of it were lost, the store alone would bring every message to its end.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createDesks } from './desks.ts'
import type { Inbox, Reception } from './inbox.ts'
import type { KeepSession } from './outcome.ts'
import { createReception } from './reception.ts'
import { voidLeases } from './recover.ts'
import { createWatchers } from './watchers.ts'
import { createWorkerFace } from './worker-face.ts'

export interface LocalInboxOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly keepSession: KeepSession
}

export interface LocalInbox {
  readonly inbox: Inbox
  readonly reception: Reception
  /** Voids what a dead process of this store held; before any worker comes. Returns how many turns were lost. */
  recover(): Promise<number>
  /** Stops looking for work. Leases that are held are not touched: their workers settle or release them. */
  close(): void
}

export function createLocalInbox(options: LocalInboxOptions): LocalInbox {
  const office = { ...options, desks: createDesks(), watchers: createWatchers() }
  const inbox = createWorkerFace(office)
  const reception = createReception(office, inbox)
  return { inbox, reception, recover: () => options.store.write(voidLeases), close: inbox.close }
}
