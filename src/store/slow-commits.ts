/**
 * Notices commits that wait long for the disk. On SQLite such a commit holds the whole process, so every caller waits
 * with it, and the owner must learn why.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'

const SLOW_COMMIT_MS = 100
/** A slow disk makes every commit slow: one line a minute says how many. */
const LOG_MS = 60_000

/** In the log; `molecule doctor` looks for it. */
export const SLOW_COMMIT_TEXT = 'the disk of the store is slow: callers wait for it'

/** Counts the slow commits since the start. */
const SLOW_COMMITS = 'molecule_store_slow_commits_total'

export interface SlowCommitsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly metrics?: Pick<Metrics, 'count'> | undefined
}

/** Returns a function that takes the duration of each commit. */
export function watchSlowCommits({ clock, log, metrics }: SlowCommitsOptions): (tookMs: number) => void {
  let loggedMs = Number.NEGATIVE_INFINITY
  let unlogged = 0
  return (tookMs) => {
    if (tookMs < SLOW_COMMIT_MS) return
    metrics?.count(SLOW_COMMITS)
    unlogged += 1
    const nowMs = clock.monotonicMs()
    if (nowMs - loggedMs < LOG_MS) return
    log.warn({ tookMs: Math.round(tookMs), slowCommits: unlogged }, SLOW_COMMIT_TEXT)
    loggedMs = nowMs
    unlogged = 0
  }
}
