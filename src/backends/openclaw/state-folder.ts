/**
 * The state folder of openclaw: where its settings are, and the queue of `--local` runs. A run owns the folder, and a
 * second run at the same time fails. The folder belongs to the user and not to a workspace, so the queue serves all
 * workspaces of this process. Invariant: runs of one folder follow each other in the order in which they asked.
 */
import { join } from 'node:path'
import { abortable } from '../../wait.ts'

type Variables = Readonly<Record<string, string>>

/** Follows openclaw's own order; undefined without a home. */
export function stateFolderOf(environment: Variables): string | undefined {
  const { OPENCLAW_STATE_DIR: own, OPENCLAW_HOME, HOME, USERPROFILE, OPENCLAW_PROFILE: profile = '' } = environment
  if (own) return own
  const home = OPENCLAW_HOME || HOME || USERPROFILE
  if (!home) return undefined
  return join(home, profile === '' || profile === 'default' ? '.openclaw' : `.openclaw-${profile}`)
}

export interface FolderQueue {
  /** Waits for the runs before it. The caller must call the returned function at the end of its run. */
  enter(folder: string, signal: AbortSignal): Promise<() => void>
}

export function createFolderQueue(): FolderQueue {
  const lastRuns = new Map<string, Promise<void>>()
  return {
    async enter(folder, signal) {
      const before = lastRuns.get(folder) ?? Promise.resolve()
      const { promise: ended, resolve: leave } = Promise.withResolvers<void>()
      const last = before.then(() => ended)
      lastRuns.set(folder, last)
      void last.then(() => lastRuns.get(folder) === last && lastRuns.delete(folder))
      try {
        await abortable(before, signal)
        return leave
      } catch (thrown) {
        leave()
        throw thrown
      }
    },
  }
}
