/**
 * All workspaces as they are, looked at again and again while somebody watches: soon after anything happened, and every
 * second, because presence changes by the mere passing of time. One look serves every reader.
 * Invariant: a workspace's `fingerprint` is the same string as long as nothing about it has changed that is worth telling.
 */
import type { Clock } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { sleep } from '../../../wait.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'

export interface WatchedWorkspace {
  readonly workspace: Workspace & WorkspaceLoad
  readonly fingerprint: string
}

export interface PlatformWatch {
  /** Calls back after each look that found a change; while nobody watches, nobody looks. */
  watch(callback: () => void): () => void
  /** All of them at the last look. The first asks the store. */
  workspaces(): Promise<readonly WatchedWorkspace[]>
  /** Something happened: look soon. */
  hint(): void
}

export interface PlatformWatchOptions {
  readonly workspaces: Pick<Workspaces, 'list'>
  readonly clock: Clock
  readonly log: Log
}

const LOOK_MS = 1000
/** However much happens, looks are this far apart. */
const LOOK_INTERVAL_MIN_MS = 100

export function createPlatformWatch({ workspaces, clock, log }: PlatformWatchOptions): PlatformWatch {
  const watchers = new Set<() => void>()
  let seen: readonly WatchedWorkspace[] | undefined
  let hinted = false
  let wake: () => void = () => undefined
  let running = false
  const hint = () => {
    hinted = true
    wake()
  }
  const look = async () => {
    const before = seen
    seen = compare(await workspaces.list(), before ?? [])
    if (isSame(seen, before ?? [])) return
    for (const callback of watchers) callback()
  }
  const run = async () => {
    running = true
    while (watchers.size > 0) {
      hinted = false
      await look().catch((error: unknown) =>
        log.warn({ err: toMoleculeError(error) }, 'the workspaces could not be looked at; it is tried again'),
      )
      await sleep(clock, LOOK_INTERVAL_MIN_MS)
      const news = new AbortController()
      wake = () => news.abort()
      // What happened since the look began is not in it.
      if (!hinted) await sleep(clock, LOOK_MS - LOOK_INTERVAL_MIN_MS, news.signal)
    }
    running = false
    seen = undefined
  }
  return {
    watch(callback) {
      watchers.add(callback)
      if (!running) void run()
      return () => {
        watchers.delete(callback)
        wake()
      }
    },
    async workspaces() {
      seen ??= compare(await workspaces.list(), [])
      return seen
    },
    hint,
  }
}

function compare(all: readonly (Workspace & WorkspaceLoad)[], before: readonly WatchedWorkspace[]): WatchedWorkspace[] {
  const known = new Map(before.map((one) => [one.workspace.id, one]))
  return all.map((workspace) => {
    const fingerprint = fingerprintOf(workspace)
    const old = known.get(workspace.id)
    return old?.fingerprint === fingerprint ? old : { workspace, fingerprint }
  })
}

const isSame = (left: readonly WatchedWorkspace[], right: readonly WatchedWorkspace[]): boolean =>
  left.length === right.length && left.every((one, index) => one === right[index])

/** Without the seconds in a reason: "nothing was heard of it for 91 s" is no news at 92. */
function fingerprintOf(workspace: Workspace & WorkspaceLoad): string {
  const { statusReason } = workspace
  return JSON.stringify({ ...workspace, statusReason: statusReason?.replace(/\d+ s\b/g, 's') })
}
