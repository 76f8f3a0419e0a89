/**
 * What is done for workspaces though nobody asks: at start each is checked again, because the program behind its
 * backend may have gone, and the files of deleted ones are put away and after a week removed. Nothing waits for it,
 * and what fails is logged and tried again.
 */
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { sleep } from '../wait.ts'
import type { WorkspaceConfigs } from './config/workspace-configs.ts'
import type { Homes } from './homes/homes.ts'

const SWEEP_MS = 3600_000

export interface WorkspaceUpkeepOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
  readonly clock: Clock
  readonly log: Log
}

export interface WorkspaceUpkeep {
  start(): void
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>
}

export function createWorkspaceUpkeep(options: WorkspaceUpkeepOptions): WorkspaceUpkeep {
  const { configs, clock, log } = options
  const stopped = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  const attempt = (what: string, work: () => Promise<void>) =>
    work().catch((error) => log.warn({ err: toMoleculeError(error) }, `${what} failed; trying again later`))
  const sweep = async () => {
    while (!stopped.signal.aborted) {
      await attempt('putting away deleted files', () => sweepDeletedHomes(options))
      await sleep(clock, SWEEP_MS, stopped.signal)
    }
  }
  return {
    start() {
      const checks = attempt('checking the workspaces', () => configs.recheckAll(stopped.signal))
      running = Promise.all([checks, sweep()])
    },
    async stop() {
      stopped.abort()
      await running
    },
  }
}

async function sweepDeletedHomes({ store, homes, clock }: WorkspaceUpkeepOptions): Promise<void> {
  // A crash between a deletion and the move of its files leaves them behind.
  for (const id of await store.read(listDeleted)) {
    if (homes.stamp(id) !== undefined) await homes.trash(id, clock.nowMs())
  }
  await homes.sweepTrash(clock.nowMs())
}

function* listDeleted(): Transaction<string[]> {
  const rows = yield* sql<{ id: string }>(
    `select w.id from workspaces w where w.deleted_at is not null
     and not exists (select 1 from workspace_load l where l.workspace_id = w.id)`,
  )
  return rows.map(({ id }) => id)
}
