/**
 * Signals a child and its descendants together, as one process group: to stop a run and to kill what a run leaves
 * behind. Windows has no groups; there `taskkill /T` walks the tree and always kills.
 */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { parseStat, scanProcesses } from './proc.ts'

const POLL_MS = 5
/** A group that still exists after this may be only zombies: /proc is scanned then, and again at doubled intervals. */
const ZOMBIE_SCAN_MS = 20
/** A process that survives SIGKILL for this long is stuck in the kernel; killGroup resolves to false. */
const KILL_GROUP_MS_MAX = 5_000

export interface ProcessGroup {
  /** The leader's pid, which is also the group's id. */
  readonly pid: number
  /** Whether the system has reaped the leader. From then on its pid may belong to another process. */
  readonly leaderReaped: () => boolean
}

/** Sends SIGTERM, and SIGKILL to the rest after the grace. Resolves to whether the group is gone. */
export async function stopGroup(group: ProcessGroup, graceMs: number): Promise<boolean> {
  signalGroup(group, 'SIGTERM')
  if (!(await waitUntilGone(group, graceMs))) return killGroup(group)
  // The scan for zombies can miss a process that was being forked, so SIGKILL follows here too.
  signalGroup(group, 'SIGKILL')
  return true
}

export function killGroup(group: ProcessGroup): Promise<boolean> {
  signalGroup(group, 'SIGKILL')
  return waitUntilGone(group, KILL_GROUP_MS_MAX)
}

/** Whether any process of the group exists, zombies included. */
export function groupAlive({ pid, leaderReaped }: ProcessGroup): boolean {
  // Prevents signalling a stranger: the system does not reuse the id of a group that exists. So a new process with the
  // pid of a reaped leader means that the group is gone.
  if (leaderReaped() && acceptsSignal(pid)) return false
  return acceptsSignal(process.platform === 'win32' ? pid : -pid)
}

function signalGroup(group: ProcessGroup, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (!groupAlive(group)) return
  if (process.platform === 'win32') {
    // A failure means that the tree is already gone; the poll that follows checks it.
    execFile('taskkill', ['/T', '/F', '/PID', String(group.pid)], () => undefined)
    return
  }
  try {
    process.kill(-group.pid, signal)
  } catch {
    // The group ended between the check and the signal.
  }
}

/** Polls in real time, because it watches the kernel. Its timers keep the platform alive until the group is dead. */
async function waitUntilGone(group: ProcessGroup, limitMs: number): Promise<boolean> {
  const startedMs = performance.now()
  let nextScanMs = ZOMBIE_SCAN_MS
  while (groupAlive(group)) {
    const waitedMs = performance.now() - startedMs
    if (waitedMs >= limitMs) return false
    if (waitedMs >= nextScanMs) {
      if (await onlyZombies(group)) return true
      nextScanMs = 2 * waitedMs
    }
    await delay(POLL_MS)
  }
  return true
}

/**
 * A zombie accepts signals until it is reaped. For an orphan the init process does that, and in a container init may be
 * late or never do it.
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
    // No such process, or one that we may not signal and therefore cannot end.
    return false
  }
}
