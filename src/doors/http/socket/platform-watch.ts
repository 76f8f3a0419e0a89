/**
 * Polls all workspaces while a socket watches: soon after any change, and every second, because presence changes with
 * time alone. One poll serves every socket.
 * Invariant: a workspace's `fingerprint` stays the same string until a change that clients should see.
 */
import type { Clock } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import type { NeedSummary } from '../../../views/needs/needs.ts'
import type { ReadCards, WorkspaceCard } from '../../../views/workspace-cards.ts'
import { createWakeUp, sleep } from '../../../wait.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'

export interface WatchedWorkspace {
  readonly workspace: Workspace & WorkspaceLoad
  readonly card: WorkspaceCard | undefined
  readonly fingerprint: string
}

export interface PlatformWatch {
  /** Calls back after each poll that found a change. Without a watcher there is no poll. */
  watch(callback: () => void): () => void
  /** All workspaces at the last poll. The first call reads the store. */
  workspaces(): Promise<readonly WatchedWorkspace[]>
  /** What needs a person, at the last poll. */
  needsYou(): Promise<NeedSummary>
  /** Something changed: poll soon. */
  hint(): void
}

export interface PlatformWatchOptions {
  readonly workspaces: Pick<Workspaces, 'all'>
  readonly readCards: ReadCards
  readonly readNeeds: (all: readonly (Workspace & WorkspaceLoad)[]) => Promise<NeedSummary>
  readonly clock: Clock
  readonly log: Log
}

const POLL_MS = 1000
/** Polls are at least this far apart, however many hints come. */
const POLL_INTERVAL_MIN_MS = 100

export function createPlatformWatch({
  workspaces,
  readCards,
  readNeeds,
  clock,
  log,
}: PlatformWatchOptions): PlatformWatch {
  const watchers = new Set<() => void>()
  let seen: readonly WatchedWorkspace[] | undefined
  let needs: NeedSummary | undefined
  let running = false
  const wakeUp = createWakeUp()
  const poll = async () => {
    const before = seen ?? []
    const markBefore = needs?.mark
    const all = await workspaces.all()
    needs = await readNeeds(all)
    seen = compare(all, await readCards(all), before)
    if (isSame(seen, before) && needs.mark === markBefore) return
    for (const callback of watchers) callback()
  }
  const run = async () => {
    running = true
    while (watchers.size > 0) {
      await poll().catch((error: unknown) =>
        log.warn({ err: toMoleculeError(error) }, 'the workspaces could not be read; trying again'),
      )
      await sleep(clock, POLL_INTERVAL_MIN_MS)
      // A hint since the poll began may not be in its result, so it ends this wait at once.
      await wakeUp.wait(undefined, (callback) => clock.after(POLL_MS - POLL_INTERVAL_MIN_MS, callback))
    }
    running = false
    seen = undefined
    needs = undefined
  }
  return {
    watch(callback) {
      watchers.add(callback)
      if (!running) void run()
      return () => {
        watchers.delete(callback)
        wakeUp.wake()
      }
    },
    async workspaces() {
      if (seen !== undefined) return seen
      const all = await workspaces.all()
      const cards = await readCards(all)
      seen ??= compare(all, cards, [])
      return seen
    },
    async needsYou() {
      needs ??= await readNeeds(await workspaces.all())
      return needs
    },
    hint: wakeUp.wake,
  }
}

function compare(
  all: readonly (Workspace & WorkspaceLoad)[],
  cards: ReadonlyMap<string, WorkspaceCard>,
  before: readonly WatchedWorkspace[],
): WatchedWorkspace[] {
  const known = new Map(before.map((watched) => [watched.workspace.id, watched]))
  return all.map((workspace) => {
    const card = cards.get(workspace.id)
    const fingerprint = fingerprintOf(workspace, card)
    const old = known.get(workspace.id)
    return old?.fingerprint === fingerprint ? old : { workspace, card, fingerprint }
  })
}

const isSame = (left: readonly WatchedWorkspace[], right: readonly WatchedWorkspace[]): boolean =>
  left.length === right.length && left.every((watched, index) => watched === right[index])

/** Without the seconds of the reason: after "... for 91 s", "... for 92 s" is not a change that clients should see. */
function fingerprintOf(workspace: Workspace & WorkspaceLoad, card: WorkspaceCard | undefined): string {
  const { statusReason } = workspace
  return JSON.stringify({ ...workspace, card, statusReason: statusReason?.replace(/\d{1,10} s\b/g, 's') })
}
