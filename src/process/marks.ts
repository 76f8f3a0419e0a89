/**
 * The mark: a variable in the environment of every child, inherited by all that it starts, so that what left the
 * process group (`setsid`, a daemon) is still found. Linux only, by reading /proc; a process that clears its
 * environment (`env -i`) is out of reach. Nothing is killed that does not carry the mark at that very moment.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseStat, scanProcesses } from './proc.ts'

const MARK_VARIABLE = 'MOLECULE_TURN'
/** What cannot be killed within this (a process stuck in the kernel) is left to the next start. */
const KILL_MARKED_MS_MAX = 2_000
const PAUSE_MS = 5

export const markValue = (owner: string, mark: string): string => `${owner}:${mark}`

export const markEnvironment = (owner: string, mark: string): Record<string, string> => ({
  [MARK_VARIABLE]: markValue(owner, mark),
})

type MarkFilter = (value: string) => boolean

/** Of those that carry a mark, the ones that were started since a moment, in the unit of start times, but for one. */
export interface StartedSince {
  readonly since: number
  readonly except: number
}

export interface KillResult {
  readonly pids: ReadonlySet<number>
  /** False when time ran out with some still there. */
  readonly complete: boolean
}

/** Kills every process whose mark is wanted, and again until none is left: they may fork while we look. */
export async function killMarked(wanted: MarkFilter, younger?: StartedSince): Promise<KillResult> {
  const pids = new Set<number>()
  if (process.platform !== 'linux') return { pids, complete: true }
  const deadlineMs = performance.now() + KILL_MARKED_MS_MAX
  // Two clean looks: in the middle of its `exec` a process shows an empty environment and would slip through one.
  let cleanLooks = 0
  while (cleanLooks < 2) {
    const found = await killMarkedOnce(wanted, pids, younger)
    cleanLooks = found === 0 ? cleanLooks + 1 : 0
    if (found > 0 && performance.now() > deadlineMs) return { pids, complete: false }
    if (cleanLooks < 2) await delay(PAUSE_MS)
  }
  return { pids, complete: true }
}

/** Resolves to how many were found; those that it killed are added. */
async function killMarkedOnce(wanted: MarkFilter, killed: Set<number>, younger?: StartedSince): Promise<number> {
  let found = 0
  await scanProcesses('environ', (pid, environment) => {
    const value = markOf(environment)
    // A platform started from inside one of its own turns carries the mark too, and would end itself.
    if (value === undefined || !wanted(value) || pid === process.pid) return
    if (younger !== undefined && !wasStartedSince(pid, younger)) return
    found += 1
    if (killIfMarked(pid, wanted)) killed.add(pid)
  })
  return found
}

/** Looks again and kills in one breath: since it was read the pid may have been given to somebody else. */
function killIfMarked(pid: number, wanted: MarkFilter): boolean {
  try {
    const value = markOf(readFileSync(`/proc/${pid}/environ`))
    if (value === undefined || !wanted(value)) return false
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    // It has ended by itself, which is all we want.
    return false
  }
}

function wasStartedSince(pid: number, { since, except }: StartedSince): boolean {
  if (pid === except) return false
  try {
    return Number(parseStat(readFileSync(`/proc/${pid}/stat`))?.startTime) >= since
  } catch {
    // It has ended by itself.
    return false
  }
}

function markOf(environment: Buffer): string | undefined {
  const name = `${MARK_VARIABLE}=`
  let at = environment.indexOf(name, 0, 'latin1')
  // A variable that merely ends in our name is another one.
  while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(name, at + 1, 'latin1')
  if (at < 0) return undefined
  const end = environment.indexOf(0, at)
  return environment.toString('utf8', at + name.length, end < 0 ? environment.length : end)
}
