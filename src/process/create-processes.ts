/**
 * Creates the process seam: joins what all subprocesses share (the sweeper, the orphan records) and closes them
 * together. One subprocess is in subprocess.ts. Invariant: after `close` no process that was started here is alive.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Cgroups } from './cgroups.ts'
import { createOrphanRecords } from './orphan-records.ts'
import type { Processes } from './processes.ts'
import { runOnce } from './run-once.ts'
import { endedProcess, startProcess } from './running-process.ts'
import { notStartedResult, type ProcessContext } from './subprocess.ts'
import { createSweeper } from './sweeper.ts'

/** The time that an agent has after SIGTERM to save its session; then SIGKILL follows. */
const KILL_GRACE_MS = 2_000

export interface ProcessesOptions {
  /** Names the data folder in the marks of the children, so that a restart kills only its own orphans. */
  readonly owner: string
  /** The folder of the orphan records; undefined = no records. */
  readonly recordsDir?: string
  readonly clock: Clock
  readonly log: Log
  /** From SIGTERM to SIGKILL, unless the spawn options set their own. */
  readonly killGraceMs?: number
  /** Unset = children run in the cgroup of the platform. `close` closes it. */
  readonly cgroups?: Cgroups | undefined
}

export function createProcesses(options: ProcessesOptions): Processes {
  const { owner, clock, log, killGraceMs = KILL_GRACE_MS, cgroups } = options
  const subprocesses: ProcessContext['subprocesses'] = new Map()
  const isLive = (mark: string) =>
    subprocesses.keys().some((subprocess) => subprocess.options.mark === mark && !subprocess.treeEnded)
  const sweeper = createSweeper({ owner, clock, log, isLive })
  const records = createOrphanRecords(options.recordsDir, { owner: options.owner, clock, log })
  const context: ProcessContext = { owner, clock, log, killGraceMs, sweeper, records, cgroups, subprocesses }
  const closeAll = async () => {
    for (const subprocess of subprocesses.keys()) subprocess.stop('canceled')
    await Promise.all(subprocesses.values())
    await sweeper.close()
    await records.close()
    await cgroups?.close()
  }
  let closed: Promise<void> | undefined
  return {
    run(runOptions, signal) {
      if (closed !== undefined || signal.aborted) return Promise.resolve(notStartedResult('canceled'))
      return runOnce(runOptions, signal, context)
    },
    start(startOptions) {
      if (closed !== undefined) return endedProcess(Promise.resolve(notStartedResult('canceled')))
      return startProcess(startOptions, context)
    },
    close() {
      closed ??= closeAll()
      return closed
    },
  }
}
