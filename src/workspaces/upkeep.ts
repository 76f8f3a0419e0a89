/**
 * Background work for workspaces. At start it checks every backend again, because its program may be gone. Every hour
 * it moves the files of deleted workspaces to the trash, empties the trash after a week, and deletes old memories. No
 * caller waits for it; a failure is logged and retried in the next round.
 */
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import { withQueue } from '../inbox/queue-rows.ts'
import type { Log } from '../log.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { sleep } from '../wait.ts'
import type { Homes } from './homes/homes.ts'
import type { Logins } from './logins.ts'
import type { Memories } from './memories.ts'
import type { Recoveries } from './recoveries.ts'
import type { WorkspaceConfigs } from './workspace-configs.ts'

const SWEEP_MS = 3600_000

export interface WorkspaceUpkeepOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
  /** Looks at the log-ins of agents; default: nothing does. */
  readonly logins?: Pick<Logins, 'start' | 'stop'>
  /** Brings back the status of workspaces that can run again; default: nothing does. */
  readonly recoveries?: Pick<Recoveries, 'start' | 'stop'>
  readonly memories: Pick<Memories, 'prune' | 'forgetAll'>
  readonly clock: Clock
  readonly log: Log
}

export interface WorkspaceUpkeep {
  start(): void
  /** Resolves when all its work has ended. */
  stop(): Promise<void>
}

export function createWorkspaceUpkeep(options: WorkspaceUpkeepOptions): WorkspaceUpkeep {
  const { configs, logins, recoveries, clock, log } = options
  const stopped = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  const attempt = (name: string, work: () => Promise<void>) =>
    work().catch((error) => log.warn({ err: toMoleculeError(error) }, `${name} failed; it is retried later`))
  const sweep = async () => {
    while (!stopped.signal.aborted) {
      await attempt('moving the files of deleted workspaces to the trash', () => sweepDeletedHomes(options))
      await attempt('forgetting old memories', () => sweepMemories(options, stopped.signal))
      await sleep(clock, SWEEP_MS, stopped.signal)
    }
  }
  return {
    start() {
      const checks = attempt('checking the workspaces', () => configs.recheckAll(stopped.signal))
      running = Promise.all([checks, sweep()])
      logins?.start()
      recoveries?.start()
    },
    async stop() {
      stopped.abort()
      await Promise.all([running, logins?.stop(), recoveries?.stop()])
    },
  }
}

async function sweepDeletedHomes({ store, homes, clock }: WorkspaceUpkeepOptions): Promise<void> {
  // A crash between the deletion and the move of the files leaves them behind.
  for (const id of await store.read(listDeleted)) {
    if (homes.stamp(id) !== undefined) await homes.trash(id, clock.nowMs())
  }
  await homes.sweepTrash(clock.nowMs())
}

/** Summaries that have expired, and everything that a deleted workspace remembered. */
async function sweepMemories({ store, memories }: WorkspaceUpkeepOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await memories.prune()) > 0);
  for (const id of await store.read(listDeletedWithMemories)) {
    for (const namespace of [`workspace:${id}`, `team:${id}`]) {
      while (!signal.aborted && (await memories.forgetAll(namespace)) > 0);
    }
  }
}

const DELETED = `select w.id from workspaces w where w.deleted_at is not null
  and not ${withQueue('w.id')}`

function* listDeleted(): Transaction<string[]> {
  return (yield* sql<{ id: string }>(DELETED)).map(({ id }) => id)
}

function* listDeletedWithMemories(): Transaction<string[]> {
  const rows = yield* sql<{ id: string }>(
    `${DELETED} and exists (select 1 from memories m where m.namespace in ('workspace:' || w.id, 'team:' || w.id))`,
  )
  return rows.map(({ id }) => id)
}
