/**
 * Kills processes that left their group, by their mark. A scan of /proc costs 10 to 40 ms, so no reply waits for it:
 * runs that ended by themselves are swept together about a second later, and kills at the same time share one scan.
 * Invariant: a mark is swept only when no run of that mark is live.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { killMarked, markValue } from './marks.ts'

const SWEEP_DELAY_MS = 1_000

export interface Sweeper {
  /** Resolves when no process carries the mark any more. */
  now(mark: string): Promise<void>
  /** The same in about a second, together with other marks. */
  later(mark: string): void
  /** Sweeps the waiting marks at once. */
  close(): Promise<void>
}

export interface SweeperOptions {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
  /** Whether a run of this mark is live. The end of that run sweeps the mark again. */
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
    // Joins the sweep that has not begun yet, so that a hundred kills at once cost one scan.
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
    if (killed.pids.size > 0) log.info({ pids: [...killed.pids] }, 'killed processes that left their group')
    if (!killed.complete) log.error({ marks }, 'some processes of these turns cannot be killed')
  } catch (error) {
    log.error({ err: error, marks }, 'the scan for processes that left their group failed')
  }
}
