/**
 * The house of all subprocesses: what they share (the sweeper, the orphan records) and how they end together. The
 * life of one of them is in life.ts. Invariant: after `close` no process that was started here is alive.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { type House, unstarted } from './life.ts'
import type { Processes } from './processes.ts'
import { createRecords } from './records.ts'
import { startRun } from './run.ts'
import { startRunning, stillborn } from './running.ts'
import { createSweeper } from './sweep.ts'

/** What an agent gets to save its session before it is killed. */
const KILL_GRACE_MS = 2_000

export interface ProcessesOptions {
  /** Whose children these are: unique to the data folder, so that a restart reaps its own and nobody else's. */
  readonly owner: string
  /** Where orphan records are kept; undefined = none are. */
  readonly recordsDir?: string
  readonly clock: Clock
  readonly log: Log
  /** From SIGTERM to SIGKILL, where a run does not say otherwise. */
  readonly killGraceMs?: number
}

export function createProcesses(options: ProcessesOptions): Processes {
  const { owner, clock, log, killGraceMs = KILL_GRACE_MS } = options
  const lives: House['lives'] = new Map()
  const isLive = (mark: string) => lives.keys().some((life) => life.options.mark === mark && !life.treeEnded)
  const sweeper = createSweeper({ owner, clock, log, isLive })
  const records = createRecords(options.recordsDir, { clock, log })
  const house: House = { owner, clock, log, killGraceMs, sweeper, records, lives }
  const closeAll = async () => {
    for (const life of lives.keys()) life.stop('canceled')
    await Promise.all(lives.values())
    await sweeper.close()
    await records.close()
  }
  let closed: Promise<void> | undefined
  return {
    run(runOptions, signal) {
      if (closed !== undefined || signal.aborted) return Promise.resolve(unstarted('canceled'))
      return startRun(runOptions, signal, house)
    },
    start(startOptions) {
      if (closed !== undefined) return stillborn(Promise.resolve(unstarted('canceled')))
      return startRunning(startOptions, house)
    },
    close() {
      closed ??= closeAll()
      return closed
    },
  }
}
