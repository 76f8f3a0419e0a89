/**
 * The life of one subprocess: spawned into a group of its own with a mark in its environment, fed, read within limits,
 * and its whole tree seen to the end. What the end means is for the backend to say. Invariant: a run resolves once,
 * always, never rejects, and by then its tree is dead (escapees of a run that ended by itself: about a second later).
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Clock, TIMER_MS_MAX } from '../clock.ts'
import type { Log } from '../log.ts'
import { type Group, groupAlive, killGroup, stopGroup } from './group.ts'
import { markEnvironment } from './marks.ts'
import { createCapture, createTail } from './output.ts'
import type { RunOptions, RunResult } from './processes.ts'
import type { Records } from './records.ts'
import type { Sweeper } from './sweep.ts'

/** After an exit the pipes may still hold data, or be held open by a grandchild for ever: silence tells them apart. */
const PIPE_SILENCE_MS = 100
const PIPE_DRAIN_MS_MAX = 1_000

/** What all runs of one platform share. */
export interface House {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
  readonly killGraceMs: number
  readonly sweeper: Sweeper
  readonly records: Records
  readonly runs: Map<Run, Promise<RunResult>>
}

type Stop = 'timed_out' | 'canceled' | 'output_too_large'

interface Run {
  readonly child: ChildProcessWithoutNullStreams
  readonly pid: number
  readonly options: RunOptions
  readonly house: House
  readonly stopped: Promise<Stop>
  /** The first reason given is the one that counts. */
  readonly stop: (end: Stop) => void
  /** From here on whatever carries the mark is an escapee. */
  treeEnded: boolean
}

/** Registers the run before it returns, so that a `close` right after finds it. */
export async function startRun(options: RunOptions, signal: AbortSignal, house: House): Promise<RunResult> {
  const child = spawnChild(options, house.owner)
  if (child instanceof Error) return unstarted('spawn_failed', child)
  const { pid } = child
  if (pid === undefined) return unstarted('spawn_failed', await spawnError(child, options.cwd))
  const { promise: stopped, resolve: stop } = Promise.withResolvers<Stop>()
  const run: Run = { child, pid, options, house, stopped, stop, treeEnded: false }
  const result = supervise(run, signal)
  house.runs.set(run, result)
  return result.finally(() => house.runs.delete(run))
}

/** A run that never was. */
export function unstarted(end: 'canceled' | 'spawn_failed', cause?: Error): RunResult {
  const none = new Uint8Array()
  const facts = { end, exitCode: null, signal: null, stdout: none, stderrTail: none, stderrCut: false }
  return cause === undefined ? facts : { ...facts, cause }
}

function spawnChild({ command, cwd, env, mark }: RunOptions, owner: string): Run['child'] | Error {
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

function spawnError(child: Run['child'], cwd: string): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      // The system blames the program for a folder that is not there.
      const lost = error.code === 'ENOENT' && !existsSync(cwd)
      resolve(lost ? new Error(`the working folder ${cwd} does not exist`, { cause: error }) : error)
    })
  })
}

async function supervise(run: Run, signal: AbortSignal): Promise<RunResult> {
  const { child, pid, options, house } = run
  const leader = watchLeader(child)
  const { stdout, stderr } = readOutput(run)
  // A child that never reads its input, or has closed it, is in its right.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on('error', ignored)
  child.stdin.end(options.input)
  const release = watchLimits(run, signal)
  const forget = house.records.add({ pid, mark: options.mark, program: options.command[0] })

  const end = await Promise.race([leader.exited, run.stopped])
  release()
  const gone = end === 'exited' ? await finish(run, leader) : await cutShort(run, leader)

  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
  // One that cannot be killed keeps its record for the next start, and must not keep this process from ending.
  if (gone) forget()
  else child.unref()
  if (!gone) house.log.error({ pid, mark: options.mark }, 'a process cannot be killed')
  return {
    end: end === 'exited' && stdout.over() ? 'output_too_large' : end,
    exitCode: leader.exitCode,
    signal: leader.signal,
    stdout: stdout.bytes(),
    stderrTail: stderr.bytes(),
    stderrCut: stderr.cut(),
  }
}

interface Leader {
  readonly exited: Promise<'exited'>
  /** The pipes have been read to their end, by which time everybody who held them is gone. */
  readonly closed: Promise<void>
  reaped: boolean
  exitCode: number | null
  signal: NodeJS.Signals | null
}

function watchLeader(child: Run['child']): Leader {
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

function readOutput({ child, options, stop }: Run) {
  const stdout = createCapture(options.outputBytesMax)
  const stderr = createTail(options.stderrBytesKept)
  child.stdout.on('data', (chunk: Uint8Array) => {
    const kept = stdout.push(chunk)
    if (kept.length > 0) options.onOutput?.(kept)
    if (!stdout.over()) return
    // Reads no more of it: a command that prints for ever would have us busy until it is dead.
    child.stdout.destroy()
    stop('output_too_large')
  })
  child.stderr.on('data', (chunk: Uint8Array) => stderr.push(chunk))
  return { stdout, stderr }
}

/** Stops the run at its time-out or when the caller no longer wants it; the returned function ends the watch. */
function watchLimits({ options: { timeoutMs }, house, stop }: Run, signal: AbortSignal): () => void {
  const cancel = () => stop('canceled')
  signal.addEventListener('abort', cancel, { once: true })
  let cancelTimer: (() => void) | undefined
  // In steps, because one timer cannot be longer than TIMER_MS_MAX.
  const wait = (leftMs: number) => {
    cancelTimer = house.clock.after(Math.min(leftMs, TIMER_MS_MAX), () => {
      if (leftMs > TIMER_MS_MAX) wait(leftMs - TIMER_MS_MAX)
      else stop('timed_out')
    })
  }
  if (timeoutMs !== undefined) wait(timeoutMs)
  return () => {
    signal.removeEventListener('abort', cancel)
    cancelTimer?.()
  }
}

/** The leader has left by itself: takes what is still in the pipes, then ends what it left behind. */
async function finish(run: Run, leader: Leader): Promise<boolean> {
  await drained(run.child, leader)
  const group: Group = { pid: run.pid, leaderReaped: () => true }
  const gone = !groupAlive(group) || (await killGroup(group))
  run.treeEnded = true
  run.house.sweeper.later(run.options.mark)
  return gone
}

async function cutShort(run: Run, leader: Leader): Promise<boolean> {
  const { options, house } = run
  const group: Group = { pid: run.pid, leaderReaped: () => leader.reaped }
  const gone = await stopGroup(group, options.killGraceMs ?? house.killGraceMs)
  // Seen dead is not yet waited for, and its exit code comes only with that.
  if (gone) await leader.exited
  run.treeEnded = true
  await house.sweeper.now(options.mark)
  // Its last words on stderr; an unmarked escapee may hold the pipe open for ever.
  await drained(run.child, leader)
  return gone
}

/** Resolves when the pipes are at their end, or have been silent, or have talked for too long after the exit. */
function drained(child: Run['child'], leader: Leader): Promise<void> {
  return new Promise((resolve) => {
    const deadlineMs = performance.now() + PIPE_DRAIN_MS_MAX
    let heard = false
    const hear = () => {
      heard = true
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    const look = () => {
      if (!heard || performance.now() > deadlineMs) return resolve()
      heard = false
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

function ignored(): void {
  // The other end is gone; the exit tells the rest.
}
