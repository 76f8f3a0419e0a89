/**
 * The sweeper: finds what left its process group, by its mark. A scan of /proc costs 10 to 40 ms, so it is never on
 * the way of an answer: runs that ended by themselves are swept together about a second later, and any number of
 * kills that happen at once share one scan. Invariant: a mark is swept only when no run of that mark is live.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { killMarked, markValue } from './marks.ts'

const SWEEP_DELAY_MS = 1_000

export interface Sweeper {
  /** Resolves when nothing carries the mark any more. */
  now(mark: string): Promise<void>
  /** The same in about a second, together with the others that ended meanwhile. */
  later(mark: string): void
  /** Sweeps at once what still waits. */
  close(): Promise<void>
}

export interface SweeperOptions {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
  /** Whether a run of this mark is under way; its end brings the mark here again. */
  readonly isLive: (mark: string) => boolean
}

export function createSweeper(options: SweeperOptions): Sweeper {
  let waiting = new Set<string>()
  let cancelTimer: (() => void) | undefined
  let last: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  const begin = (): Promise<void> => {
    next = undefined
    cancelTimer?.()
    cancelTimer = undefined
    const marks = [...waiting].filter((mark) => !options.isLive(mark))
    waiting = new Set()
    return sweep(marks, options)
  }
  const sweepSoon = (): Promise<void> => {
    // Joins the sweep that has not begun yet: a hundred kills at once are one scan, not a hundred.
    if (next === undefined) {
      next = last.then(begin)
      last = next
    }
    return next
  }

  return {
    now(mark) {
      waiting.add(mark)
      return sweepSoon()
    },
    later(mark) {
      waiting.add(mark)
      cancelTimer ??= options.clock.after(SWEEP_DELAY_MS, () => void sweepSoon())
    },
    close: () => (waiting.size === 0 ? last : sweepSoon()),
  }
}

async function sweep(marks: readonly string[], { owner, log }: SweeperOptions): Promise<void> {
  if (marks.length === 0) return
  const values = new Set(marks.map((mark) => markValue(owner, mark)))
  try {
    const killed = await killMarked((value) => values.has(value))
    if (killed.pids.size > 0) log.info({ pids: [...killed.pids] }, 'killed processes that had left their group')
    if (!killed.complete) log.error({ marks }, 'some processes of these turns cannot be killed')
  } catch (error) {
    log.error({ err: error, marks }, 'could not look for processes that left their group')
  }
}
