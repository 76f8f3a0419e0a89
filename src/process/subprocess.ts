/**
 * What run-once.ts and running-process.ts share: spawn a child into its own group with a mark in its environment,
 * record it, and end its whole tree. Invariant: `superviseToEnd` resolves once and never rejects. By then the tree is
 * dead, or the log says that it cannot be killed.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Cgroup, Cgroups } from './cgroups.ts'
import { groupAlive, killGroup, type ProcessGroup, stopGroup } from './group.ts'
import { markEnvironment } from './marks.ts'
import type { OrphanRecords } from './orphan-records.ts'
import type { ProcessResult, SpawnOptions } from './processes.ts'
import type { Sweeper } from './sweeper.ts'

/** After an exit the pipes may still have data, or a grandchild may hold them open for ever. Silence ends the wait. */
const PIPE_SILENCE_MS = 100
/** Data after this is lost. */
const PIPE_DRAIN_MS_MAX = 1_000

/** Shared by all children of one platform. */
export interface ProcessContext {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
  readonly killGraceMs: number
  readonly sweeper: Sweeper
  readonly records: OrphanRecords
  /** Undefined where the platform may not make cgroups. */
  readonly cgroups: Cgroups | undefined
  readonly subprocesses: Map<Subprocess, Promise<ProcessResult>>
}

type StopCause = 'timed_out' | 'canceled' | 'output_too_large'

export interface Subprocess {
  readonly child: ChildProcessWithoutNullStreams
  readonly pid: number
  readonly options: SpawnOptions
  readonly context: ProcessContext
  readonly cgroup: Cgroup | undefined
  readonly leader: Leader
  readonly stopped: Promise<StopCause>
  /** Only the first call counts. */
  readonly stop: (end: StopCause) => void
  /** From here on every process with the mark is an escapee. */
  treeEnded: boolean
}

export interface Leader {
  readonly exited: Promise<'exited'>
  /** The pipes have been read to their end; no process holds them any more. */
  readonly closed: Promise<void>
  reaped: boolean
  exitCode: number | null
  signal: NodeJS.Signals | null
}

/** Spawns synchronously, so that a `close` right after it finds the child. Gives the error if the spawn failed. */
export function spawnSubprocess(options: SpawnOptions, context: ProcessContext): Subprocess | Promise<Error> {
  const cgroup = context.cgroups?.take()
  const entering = cgroup?.entering(options)
  const child = spawnChild(entering === undefined ? options : { ...options, command: entering }, context.owner)
  const pid = child instanceof Error ? undefined : child.pid
  if (child instanceof Error || pid === undefined) {
    void cgroup?.end()
    return child instanceof Error ? Promise.resolve(child) : spawnError(child, options.cwd)
  }
  if (entering === undefined) cgroup?.add(pid)
  const { promise: stopped, resolve: stop } = Promise.withResolvers<StopCause>()
  // A child may close its stdin or never read it; that must not throw.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', ignoreError)
  return { child, pid, options, context, cgroup, leader: watchLeader(child), stopped, stop, treeEnded: false }
}

/** The result of a subprocess that was never started. */
export function notStartedResult(end: 'canceled' | 'spawn_failed', cause?: Error): ProcessResult {
  const none = new Uint8Array()
  const facts = { end, exitCode: null, signal: null, stdout: none, stderrTail: none, stderrCut: false }
  return cause === undefined ? facts : { ...facts, cause }
}

/**
 * Waits for the leader's exit or for `stop`, then ends the rest of the tree. Calls `onEnd` between the two. With
 * `sweepNow` it also waits for the kill of escapees if the leader exited by itself; otherwise that follows about a
 * second later.
 */
export async function superviseToEnd(
  subprocess: Subprocess,
  { onEnd, sweepNow }: { onEnd: () => void; sweepNow: boolean },
): Promise<'exited' | StopCause> {
  const { child, pid, options, context } = subprocess
  const forget = context.records.add({ pid, mark: options.mark, program: options.command[0] })
  const end = await Promise.race([subprocess.leader.exited, subprocess.stopped])
  onEnd()
  const gone = end === 'exited' ? await cleanUpAfterExit(subprocess, sweepNow) : await stopTree(subprocess)
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
  // A process that cannot be killed keeps its record for the next start, and must not keep the platform alive.
  if (gone) forget()
  else child.unref()
  if (!gone) context.log.error({ pid, mark: options.mark }, 'a process cannot be killed')
  return end
}

function spawnChild({ command, cwd, env, mark }: SpawnOptions, owner: string): Subprocess['child'] | Error {
  const [program, ...args] = command
  const onWindows = process.platform === 'win32'
  try {
    return spawn(program, args, {
      cwd,
      env: { ...env, ...markEnvironment(owner, mark) },
      // Its own session, so that one signal reaches the whole group. On Windows this would open a window.
      detached: !onWindows,
      windowsHide: true,
      // cmd.exe has its own quoting rules, so Node must not quote its arguments.
      windowsVerbatimArguments: onWindows && /(^|[\\/])cmd(\.exe)?$/i.test(program),
    })
  } catch (error) {
    // The system refuses the environment or an argument: it contains a NUL or is too large.
    return error instanceof Error ? error : new Error(String(error))
  }
}

function spawnError(child: Subprocess['child'], cwd: string): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      // ENOENT also means a missing working folder, although the error names the program.
      const lost = error.code === 'ENOENT' && !existsSync(cwd)
      resolve(lost ? new Error(`the working folder ${cwd} does not exist`, { cause: error }) : error)
    })
  })
}

function watchLeader(child: Subprocess['child']): Leader {
  const exited = Promise.withResolvers<'exited'>()
  const closed = Promise.withResolvers<void>()
  const leader: Leader = {
    exited: exited.promise,
    closed: closed.promise,
    reaped: false,
    exitCode: null,
    signal: null,
  }
  child.once('exit', (exitCode, signal) => {
    Object.assign(leader, { reaped: true, exitCode, signal })
    exited.resolve('exited')
  })
  child.once('close', () => closed.resolve())
  return leader
}

/** After the leader exited by itself: reads the rest of the pipes, then kills what the leader left behind. */
async function cleanUpAfterExit(subprocess: Subprocess, sweepNow: boolean): Promise<boolean> {
  await waitForPipes(subprocess)
  const group: ProcessGroup = { pid: subprocess.pid, leaderReaped: () => true }
  const gone = !groupAlive(group) || (await killGroup(group))
  const isCgroupEmpty = (await subprocess.cgroup?.end()) ?? true
  subprocess.treeEnded = true
  if (sweepNow) await subprocess.context.sweeper.now(subprocess.options.mark)
  else subprocess.context.sweeper.later(subprocess.options.mark)
  return gone && isCgroupEmpty
}

async function stopTree(subprocess: Subprocess): Promise<boolean> {
  const { options, context, leader } = subprocess
  const group: ProcessGroup = { pid: subprocess.pid, leaderReaped: () => leader.reaped }
  const gone = await stopGroup(group, options.killGraceMs ?? context.killGraceMs)
  // A dead leader may not be reaped yet, and its exit code comes only then.
  if (gone) await leader.exited
  const isCgroupEmpty = (await subprocess.cgroup?.end()) ?? true
  subprocess.treeEnded = true
  await context.sweeper.now(options.mark)
  // Reads its last stderr output. It has a limit, because an unmarked escapee may hold the pipe open for ever.
  await waitForPipes(subprocess)
  return gone && isCgroupEmpty
}

/** Resolves when the pipes are at their end, after 100 ms of silence, or 1 s after the exit. */
function waitForPipes({ child, leader }: Subprocess): Promise<void> {
  return new Promise((resolve) => {
    const deadlineMs = performance.now() + PIPE_DRAIN_MS_MAX
    let sawData = false
    const onData = () => {
      sawData = true
    }
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)
    const check = () => {
      if (!sawData || performance.now() > deadlineMs) return resolve()
      sawData = false
      wait()
    }
    let timer: NodeJS.Timeout | undefined
    // If the platform was busy, the timer fires before the pipes are read; setImmediate runs after both.
    const wait = () => {
      timer = setTimeout(() => setImmediate(check), PIPE_SILENCE_MS)
    }
    wait()
    void leader.closed.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

function ignoreError(): void {
  // The other end is gone; the exit of the child reports it.
}
