/**
 * Brings back the status of hosted workspaces whose backend could not run: a program that was installed later. A turn that
 * was answered proves it at once. Without a turn the failed ones are checked again every half minute, without a log
 * entry for a check that fails again.
 */
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import { withHostedQueue } from '../inbox/queue-rows.ts'
import type { Outcome } from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { sleep } from '../wait.ts'
import type { WorkspaceConfigs } from './workspace-configs.ts'

const ROUND_MS = 30_000

export interface RecoveriesOptions {
  readonly store: Store
  readonly configs: Pick<WorkspaceConfigs, 'recover' | 'answered'>
  readonly clock: Clock
  readonly log: Log
}

export interface Recoveries {
  start(): void
  stop(): Promise<void>
  /** A turn of the workspace has ended. Costs nothing unless its status is `failed`. */
  turnEnded(workspaceId: string, outcome: Outcome): void
}

export function createRecoveries({ store, configs, clock, log }: RecoveriesOptions): Recoveries {
  const stopped = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  let writing: Promise<unknown> = Promise.resolve()
  const attempt = (work: Promise<void>) =>
    work.catch((error) => log.warn({ err: toMoleculeError(error) }, 'a failed workspace could not be checked again'))
  const round = async () => {
    for (const id of await store.read(listFailed)) {
      if (stopped.signal.aborted) return
      await attempt(configs.recover(id))
    }
  }
  return {
    start() {
      const loop = async () => {
        for (;;) {
          await sleep(clock, ROUND_MS, stopped.signal)
          if (stopped.signal.aborted) return
          await attempt(round())
        }
      }
      running = loop()
    },
    async stop() {
      stopped.abort()
      await Promise.all([running, writing])
    },
    turnEnded(id, outcome) {
      if (outcome.type === 'done' && !stopped.signal.aborted) writing = attempt(configs.answered(id))
    },
  }
}

function* listFailed(): Transaction<string[]> {
  const rows = yield* sql<{ id: string }>(
    `select w.id from workspaces w where w.status = 'failed' and ${withHostedQueue('w.id')} and w.deleted_at is null`,
  )
  return rows.map(({ id }) => id)
}
