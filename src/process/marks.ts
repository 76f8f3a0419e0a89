/**
 * The mark is a variable in the environment of every child. Its descendants inherit it, so that one that left the
 * process group (`setsid`, a daemon) is still found. Linux only, from /proc; a process that clears its environment
 * (`env -i`) is found only by its cgroup, where there is one. Invariant: a process is killed only if it carries the mark
 * at the moment of the kill.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseStat, scanProcesses } from './proc.ts'

const MARK_VARIABLE = 'MOLECULE_TURN'
/** A process that survives this long is stuck in the kernel; the next start of the platform tries again. */
const KILL_MARKED_MS_MAX = 2_000
const PAUSE_MS = 5

export const markValue = (owner: string, mark: string): string => `${owner}:${mark}`

export const markEnvironment = (owner: string, mark: string): Record<string, string> => ({
  [MARK_VARIABLE]: markValue(owner, mark),
})

type MarkFilter = (value: string) => boolean

/** Restricts a kill to processes that started at or after `since` (in the unit of start times), except one pid. */
export interface StartedSince {
  readonly since: number
  readonly except: number
}

export interface KillResult {
  readonly pids: ReadonlySet<number>
  /** False if some were still alive when the time ran out. */
  readonly complete: boolean
}

/** Kills every process whose mark is wanted. Repeats until none is left, because they may fork during the scan. */
export async function killMarked(wanted: MarkFilter, younger?: StartedSince): Promise<KillResult> {
  const pids = new Set<number>()
  if (process.platform !== 'linux') return { pids, complete: true }
  const deadlineMs = performance.now() + KILL_MARKED_MS_MAX
  // Needs two clean scans: a process in the middle of `exec` shows an empty environment, so one scan can miss it.
  let cleanScans = 0
  while (cleanScans < 2) {
    const found = await killMarkedOnce(wanted, pids, younger)
    cleanScans = found === 0 ? cleanScans + 1 : 0
    if (found > 0 && performance.now() > deadlineMs) return { pids, complete: false }
    if (cleanScans < 2) await delay(PAUSE_MS)
  }
  return { pids, complete: true }
}

/** Resolves to how many were found, and adds the killed pids to `killed`. */
async function killMarkedOnce(wanted: MarkFilter, killed: Set<number>, younger?: StartedSince): Promise<number> {
  let found = 0
  await scanProcesses('environ', (pid, environment) => {
    const value = markOf(environment)
    // A platform that was started inside one of its own turns carries the mark too, and would kill itself.
    if (value === undefined || !wanted(value) || pid === process.pid) return
    if (younger !== undefined && !wasStartedSince(pid, younger)) return
    found += 1
    if (killIfMarked(pid, wanted)) killed.add(pid)
  })
  return found
}

/** Prevents killing a stranger: the pid may have been reused since the scan, so it reads the mark again right here. */
function killIfMarked(pid: number, wanted: MarkFilter): boolean {
  try {
    const value = markOf(readFileSync(`/proc/${pid}/environ`))
    if (value === undefined || !wanted(value)) return false
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    // The process has already ended.
    return false
  }
}

function wasStartedSince(pid: number, { since, except }: StartedSince): boolean {
  if (pid === except) return false
  try {
    return Number(parseStat(readFileSync(`/proc/${pid}/stat`))?.startTime) >= since
  } catch {
    // The process has already ended.
    return false
  }
}

function markOf(environment: Buffer): string | undefined {
  const name = `${MARK_VARIABLE}=`
  let at = environment.indexOf(name, 0, 'latin1')
  // Skips a variable whose name only ends in ours.
  while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(name, at + 1, 'latin1')
  if (at < 0) return undefined
  const end = environment.indexOf(0, at)
  return environment.toString('utf8', at + name.length, end < 0 ? environment.length : end)
}
