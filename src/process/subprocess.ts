/**
 * What the subprocesses of all subprocesses have in common, whether they run once (run.ts) or stay (running.ts): spawned into
 * a group of their own with a mark in their environment, recorded, and their whole tree seen to the end. Invariant:
 * `seeToEnd` resolves once, never rejects, and by then the tree is dead or reported as one that cannot be killed.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { groupAlive, killGroup, type ProcessGroup, stopGroup } from './group.ts'
import { markEnvironment } from './marks.ts'
import type { OrphanRecords } from './orphan-records.ts'
import type { ProcessResult, SpawnOptions } from './processes.ts'
import type { Sweeper } from './sweeper.ts'

/** After an exit the pipes may still hold data, or be held open by a grandchild for ever: silence tells them apart. */
const PIPE_SILENCE_MS = 100
const PIPE_DRAIN_MS_MAX = 1_000

/** What all children of one platform share. */
export interface ProcessContext {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
  readonly killGraceMs: number
  readonly sweeper: Sweeper
  readonly records: OrphanRecords
  readonly subprocesses: Map<Subprocess, Promise<ProcessResult>>
}

type StopCause = 'timed_out' | 'canceled' | 'output_too_large'

export interface Subprocess {
  readonly child: ChildProcessWithoutNullStreams
  readonly pid: number
  readonly options: SpawnOptions
  readonly context: ProcessContext
  readonly leader: Leader
  readonly stopped: Promise<StopCause>
  /** The first reason given is the one that counts. */
  readonly stop: (end: StopCause) => void
  /** From here on whatever carries the mark is an escapee. */
  treeEnded: boolean
}

export interface Leader {
  readonly exited: Promise<'exited'>
  /** The pipes have been read to their end, by which time everybody who held them is gone. */
  readonly closed: Promise<void>
  reaped: boolean
  exitCode: number | null
  signal: NodeJS.Signals | null
}

/** At once, so that whoever closes the context right after finds it; a child that could not be spawned is its error. */
export function spawnSubprocess(options: SpawnOptions, context: ProcessContext): Subprocess | Promise<Error> {
  const child = spawnChild(options, context.owner)
  if (child instanceof Error) return Promise.resolve(child)
  const { pid } = child
  if (pid === undefined) return spawnError(child, options.cwd)
  const { promise: stopped, resolve: stop } = Promise.withResolvers<StopCause>()
  // A child that never reads its input, or has closed it, is in its right.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', ignoreError)
  return { child, pid, options, context, leader: watchLeader(child), stopped, stop, treeEnded: false }
}

/** A subprocess that never was. */
export function notStartedResult(end: 'canceled' | 'spawn_failed', cause?: Error): ProcessResult {
  const none = new Uint8Array()
  const facts = { end, exitCode: null, signal: null, stdout: none, stderrTail: none, stderrCut: false }
  return cause === undefined ? facts : { ...facts, cause }
}

/** Waits for the leader's exit or the order to stop, then ends what is left of the tree. Resolves to how it ended. */
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
  // One that cannot be killed keeps its record for the next start, and must not keep this process from ending.
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
      // A session of its own, so that one signal reaches all of it. On Windows this would open a window.
      detached: !onWindows,
      windowsHide: true,
      // cmd.exe has quoting rules of its own and wants its line as it is.
      windowsVerbatimArguments: onWindows && /(^|[\\/])cmd(\.exe)?$/i.test(program),
    })
  } catch (error) {
    // An environment or argument that the system refuses: a NUL in it, or too much of it.
    return error instanceof Error ? error : new Error(String(error))
  }
}

function spawnError(child: Subprocess['child'], cwd: string): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      // The system blames the program for a folder that is not there.
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

/** The leader has left by itself: takes what is still in the pipes, then ends what it left behind. */
async function cleanUpAfterExit(subprocess: Subprocess, sweepNow: boolean): Promise<boolean> {
  await waitForPipes(subprocess)
  const group: ProcessGroup = { pid: subprocess.pid, leaderReaped: () => true }
  const gone = !groupAlive(group) || (await killGroup(group))
  subprocess.treeEnded = true
  if (sweepNow) await subprocess.context.sweeper.now(subprocess.options.mark)
  else subprocess.context.sweeper.later(subprocess.options.mark)
  return gone
}

async function stopTree(subprocess: Subprocess): Promise<boolean> {
  const { options, context, leader } = subprocess
  const group: ProcessGroup = { pid: subprocess.pid, leaderReaped: () => leader.reaped }
  const gone = await stopGroup(group, options.killGraceMs ?? context.killGraceMs)
  // Seen dead is not yet waited for, and its exit code comes only with that.
  if (gone) await leader.exited
  subprocess.treeEnded = true
  await context.sweeper.now(options.mark)
  // Its last words on stderr; an unmarked escapee may hold the pipe open for ever.
  await waitForPipes(subprocess)
  return gone
}

/** Resolves when the pipes are at their end, or have been silent, or have talked for too long after the exit. */
function waitForPipes({ child, leader }: Subprocess): Promise<void> {
  return new Promise((resolve) => {
    const deadlineMs = performance.now() + PIPE_DRAIN_MS_MAX
    let sawData = false
    const onData = () => {
      sawData = true
    }
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)
    const look = () => {
      if (!sawData || performance.now() > deadlineMs) return resolve()
      sawData = false
      wait()
    }
    let timer: NodeJS.Timeout | undefined
    // When this process was busy the timer fires before the pipes are read; setImmediate comes after both.
    const wait = () => {
      timer = setTimeout(() => setImmediate(look), PIPE_SILENCE_MS)
    }
    wait()
    void leader.closed.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

function ignoreError(): void {
  // The other end is gone; the exit tells the rest.
}
