/**
 * Stores with a hosted workspace what a turn has shown not to work with the program of its agent. A check of the backend
 * stores what the version says (`workspace-rows.ts`); only a turn shows what the program really refuses.
 */
import { toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { setLimits } from './workspace-rows.ts'

export interface LimitsOptions {
  readonly store: Store
  readonly log: Log
}

export interface Limits {
  /** A turn of the workspace has ended. Costs nothing while nothing is limited. */
  turnEnded(workspaceId: string, limits: readonly string[]): void
}

export function createLimits({ store, log }: LimitsOptions): Limits {
  const limited = new Set<string>()
  return {
    turnEnded(id, limits) {
      if (limits.length === 0 && !limited.delete(id)) return
      if (limits.length > 0) limited.add(id)
      store
        .write(() => setLimits(id, limits), id)
        .catch((error: unknown) =>
          log.warn({ err: toMoleculeError(error), workspaceId: id }, 'the limits of a workspace could not be stored'),
        )
    },
  }
}
