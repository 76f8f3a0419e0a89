/**
 * A subprocess that stays: fed as it goes, read line by line, stopped when nobody needs it any more; warm agents live
 * in these. Invariant: `ended` resolves once, always, never rejects, and by then no process of it is left.
 */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { createLineSplitter } from './line-splitter.ts'
import { killMarked, markValue } from './marks.ts'
import { createTail } from './output.ts'
import { parseStat } from './proc.ts'
import type { ProcessResult, ProcessStartOptions, RunningProcess } from './processes.ts'
import {
  notStartedResult,
  type ProcessContext,
  type Subprocess,
  spawnSubprocess,
  superviseToEnd,
} from './subprocess.ts'

/** What an agent gets to leave by itself once its input has ended, before it is told to. */
const INPUT_END_GRACE_MS = 500
/** What may wait to be read by a process that does not read. */
const WRITE_BYTES_MAX = 64 * 1024 * 1024
/** Of Linux, on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100
/** A larger difference between the two clocks is a container's own uptime, not the time that a spawn took. */
const CLOCK_SLACK_TICKS = 2 * TICKS_PER_SECOND

export function startProcess(options: ProcessStartOptions, context: ProcessContext): RunningProcess {
  const subprocess = spawnSubprocess(options, context)
  if (subprocess instanceof Promise)
    return endedProcess(subprocess.then((cause) => notStartedResult('spawn_failed', cause)))
  const clock = createStartTimeClock(subprocess.pid)
  const stderr = createTail(options.stderrBytesKept)
  const ended = supervise(subprocess, options, stderr).finally(() => context.subprocesses.delete(subprocess))
  context.subprocesses.set(subprocess, ended)
  let stopping: Promise<ProcessResult> | undefined
  return {
    pid: subprocess.pid,
    ended,
    write: (text) => write(subprocess, text),
    endInput: () => void subprocess.child.stdin.end(),
    stderr: () => ({ tail: stderr.bytes(), cut: stderr.cut() }),
    stop() {
      stopping ??= stop(subprocess, ended)
      return stopping
    },
    moment: clock,
    stopChildrenSince: (moment) => stopChildrenSince(subprocess, moment),
  }
}

/** For a process that was never started. */
export function endedProcess(ended: Promise<ProcessResult>): RunningProcess {
  return {
    pid: undefined,
    ended,
    write: () => Promise.resolve(false),
    endInput: () => undefined,
    stderr: () => ({ tail: new Uint8Array(), cut: false }),
    stop: () => ended,
    moment: () => 0,
    stopChildrenSince: () => Promise.resolve(true),
  }
}

async function supervise(
  subprocess: Subprocess,
  options: ProcessStartOptions,
  stderr: ReturnType<typeof createTail>,
): Promise<ProcessResult> {
  const { child, leader, context } = subprocess
  const lines = createLineSplitter(options.lineBytesMax, (line) => {
    try {
      options.onLine(line)
    } catch (error) {
      // Thrown from here it would end the whole platform; so it ends this process.
      context.log.error({ err: error, pid: subprocess.pid }, 'a line of a process could not be taken')
      subprocess.stop('canceled')
    }
  })
  let over = false
  child.stdout.on('data', (chunk: Uint8Array) => {
    if (over || lines.push(chunk)) return
    over = true
    // Reads no more of it: one that prints for ever would have us busy until it is dead.
    child.stdout.destroy()
    subprocess.stop('output_too_large')
  })
  child.stderr.on('data', (chunk: Uint8Array) => stderr.push(chunk))
  const end = await superviseToEnd(subprocess, { onEnd: () => undefined, sweepNow: options.sweepLater !== true })
  lines.end()
  return {
    end: over ? 'output_too_large' : end,
    exitCode: leader.exitCode,
    signal: leader.signal,
    stdout: new Uint8Array(),
    stderrTail: stderr.bytes(),
    stderrCut: stderr.cut(),
  }
}

/** Resolves when the system has taken it, so that a writer who waits is never far ahead of the reader. */
function write({ child: { stdin } }: Subprocess, text: string): Promise<boolean> {
  if (!stdin.writable || stdin.writableLength > WRITE_BYTES_MAX) return Promise.resolve(false)
  return new Promise((resolve) => {
    // A pipe that is destroyed calls back with an error; a reader that is gone is seen by the exit.
    stdin.write(text, (error) => resolve(error === undefined || error === null))
  })
}

/** Its input ends first: an agent that leaves by itself has saved its session. */
async function stop(subprocess: Subprocess, ended: Promise<ProcessResult>): Promise<ProcessResult> {
  const { stdin } = subprocess.child
  // One whose input has ended before has had its time to leave.
  if (stdin.writableEnded) subprocess.stop('canceled')
  stdin.end()
  const timer = setTimeout(() => subprocess.stop('canceled'), INPUT_END_GRACE_MS)
  void subprocess.leader.exited.then(() => clearTimeout(timer))
  return ended
}

/**
 * The moment of now in the unit of start times, read cheaply. In a container the uptime may be the container's while
 * start times are the machine's; a process that has just been started tells how far they are apart.
 */
function createStartTimeClock(pid: number): () => number {
  if (process.platform !== 'linux') return () => 0
  const uptimeTicks = () => Math.floor(uptime() * TICKS_PER_SECOND)
  try {
    const started = Number(parseStat(readFileSync(`/proc/${pid}/stat`))?.startTime)
    const apart = started - uptimeTicks()
    const offset = Math.abs(apart) < CLOCK_SLACK_TICKS ? 0 : apart
    return () => uptimeTicks() + offset
  } catch {
    // It has ended already, so that nobody will be looked for either.
    return uptimeTicks
  }
}

async function stopChildrenSince({ pid, options, context }: Subprocess, moment: number): Promise<boolean> {
  if (process.platform !== 'linux') return false
  const value = markValue(context.owner, options.mark)
  const killed = await killMarked((found) => found === value, { since: moment, except: pid })
  if (killed.pids.size > 0) context.log.info({ pids: [...killed.pids] }, 'killed what a cancelled turn had started')
  return killed.complete
}
