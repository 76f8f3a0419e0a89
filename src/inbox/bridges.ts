/** The seam of bridges, workers on other machines: what the HTTP door calls for them. */
import type { Directive, Inbox, LeaseKey, NumberedEvents, Outcome } from './worker.ts'

export interface BridgeCall {
  readonly workspaceId: string
  /** The bridge's own name for itself; the same after its restart. */
  readonly bridge: string
  /** How many leases the bridge can hold at a time. */
  readonly leasesMax: number
  /** The leases that it holds, by `leaseId`. */
  readonly holding: readonly string[]
  readonly waitMs: number
}

/**
 * Contract: `lease` answers as soon as there is a directive, or with none after `waitMs`; a second call of the same
 * bridge ends the first. A lease that was claimed for a call whose caller has gone is released. The other methods are
 * those of `Inbox`; a key of another workspace is stale.
 */
export interface Bridges extends Omit<Inbox, 'leases' | 'settle'> {
  lease(call: BridgeCall, signal: AbortSignal): Promise<Directive[]>
  settle(key: LeaseKey, input: BridgeSettleInput): ReturnType<Inbox['settle']>
  /** True while a bridge of the workspace waits for work in this process. */
  isConnected(workspaceId: string): boolean
}

export interface BridgeSettleInput {
  readonly outcome: Outcome
  readonly unsent?: NumberedEvents
  /** The host on which the session of the outcome lives. */
  readonly host: string
}
