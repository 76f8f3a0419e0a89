/**
 * A child and its descendants as one process group, signalled together. Used for stopping a run and for what a run
 * leaves behind. On Windows there are no groups: `taskkill /T` walks the tree instead, and always kills.
 */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { parseStat, scanProcesses } from './proc.ts'

const POLL_MS = 5
/** A group that still answers after this may consist of zombies: worth a scan, and again each time twice as late. */
const ZOMBIE_SCAN_MS = 20
/** A process that survives SIGKILL for so long is stuck in the kernel: nothing we do ends it. */
const KILL_GROUP_MS_MAX = 5_000

export interface ProcessGroup {
  /** The leader's pid, which is the group's number. */
  readonly pid: number
  /** Whether the leader has been waited for, from when on its number may be given to somebody else. */
  readonly leaderReaped: () => boolean
}

/** SIGTERM, SIGKILL to what is left after the grace. Resolves to whether the group is gone. */
export async function stopGroup(group: ProcessGroup, graceMs: number): Promise<boolean> {
  signalGroup(group, 'SIGTERM')
  if (!(await waitUntilGone(group, graceMs))) return killGroup(group)
  // Where only zombies were seen, one that was just being born may have been missed.
  signalGroup(group, 'SIGKILL')
  return true
}

export function killGroup(group: ProcessGroup): Promise<boolean> {
  signalGroup(group, 'SIGKILL')
  return waitUntilGone(group, KILL_GROUP_MS_MAX)
}

/** Whether any process of the group is there, zombies included. */
export function groupAlive({ pid, leaderReaped }: ProcessGroup): boolean {
  // A group keeps its number from being used again, so a process with the number of a reaped leader is a stranger.
  if (leaderReaped() && acceptsSignal(pid)) return false
  return acceptsSignal(process.platform === 'win32' ? pid : -pid)
}

function signalGroup(group: ProcessGroup, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (!groupAlive(group)) return
  if (process.platform === 'win32') {
    // Its failure means that the tree is gone already; the poll that follows sees whether it is.
    execFile('taskkill', ['/T', '/F', '/PID', String(group.pid)], () => undefined)
    return
  }
  try {
    process.kill(-group.pid, signal)
  } catch {
    // Gone between the question and the signal.
  }
}

/** These waits watch the kernel, so they take real time, and keep the process alive until its children are dead. */
async function waitUntilGone(group: ProcessGroup, limitMs: number): Promise<boolean> {
  const startedMs = performance.now()
  let zombieLookMs = ZOMBIE_SCAN_MS
  while (groupAlive(group)) {
    const waitedMs = performance.now() - startedMs
    if (waitedMs >= limitMs) return false
    if (waitedMs >= zombieLookMs) {
      if (await onlyZombies(group)) return true
      zombieLookMs = 2 * waitedMs
    }
    await delay(POLL_MS)
  }
  return true
}

/**
 * The dead answer signals too, until somebody waits for them, and for orphans that is the system's first process: in a
 * container it may take its time, or never do it.
 */
async function onlyZombies({ pid }: ProcessGroup): Promise<boolean> {
  if (process.platform !== 'linux') return false
  let live = 0
  await scanProcesses('stat', (_, content) => {
    const stat = parseStat(content)
    if (stat?.group === pid && stat.state !== 'Z') live += 1
  })
  return live === 0
}

function acceptsSignal(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    // No such process, or one that we may not signal and so cannot end either.
    return false
  }
}
