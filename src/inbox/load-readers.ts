/** The seam for readers of all workspaces at once: what needs a person, what was used today, and the load. */
import type { UsageSum } from './readers.ts'

export interface OverviewQuery {
  /** The last workspace of the page before. */
  readonly after?: string
  readonly limit: number
}

export interface OverviewPage {
  readonly workspaces: readonly {
    readonly id: string
    /** Dead letters that no person has handled. */
    readonly deadLetters: number
    /** Tasks of people that ask for an answer or a log-in, among the last 100 tasks. */
    readonly questions: number
    /** Since midnight UTC. */
    readonly today: UsageSum
  }[]
  readonly next?: string
}

/** Delegations of one workspace to another that are not finished. */
export interface OpenDelegations {
  readonly from: string
  readonly to: string
  readonly count: number
}

export interface Overview {
  read(query: OverviewQuery): Promise<OverviewPage>
  /** Who works for whom now, the most delegations first, at most 500 pairs. */
  openDelegations(): Promise<readonly OpenDelegations[]>
}

export interface LoadReport {
  /** Messages that wait and turns that run, in all workspaces. */
  readonly waiting: number
  readonly running: number
  /** The busiest workspaces, the longest queue first. */
  readonly workspaces: readonly {
    readonly id: string
    readonly waiting: number
    readonly running: number
    /** How long the oldest message that could run has waited. */
    readonly oldestWaitingMs: number
  }[]
}
