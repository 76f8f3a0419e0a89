/**
 * A subprocess that keeps running, such as a warm agent: the caller writes to it, reads it line by line, and stops it.
 * Invariant: `ended` always resolves, once, and never rejects. By then its whole tree is dead.
 */
import { readFileSync } from 'node:fs'
import { uptime } from 'node:os'
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

/** The time that an agent has to exit after its stdin closes; then SIGTERM follows. */
const INPUT_END_GRACE_MS = 500
/** Unread input of a process; a write beyond it resolves to false. */
const WRITE_BYTES_MAX = 64 * 1024 * 1024
/** After a longer line of stderr, `onErrorLine` gets no more lines. */
const ERROR_LINE_BYTES_MAX = 64 * 1024
/** Linux uses this value on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100
/** A larger difference between the two clocks comes from a container's own uptime, not from the time of the spawn. */
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
    killChildrenSince: (moment) => killChildrenSince(subprocess, moment),
  }
}

/** Stands for a process that was never started. */
export function endedProcess(ended: Promise<ProcessResult>): RunningProcess {
  return {
    pid: undefined,
    ended,
    write: () => Promise.resolve(false),
    endInput: () => undefined,
    stderr: () => ({ tail: new Uint8Array(), cut: false }),
    stop: () => ended,
    moment: () => 0,
    killChildrenSince: () => Promise.resolve(true),
  }
}

async function supervise(
  subprocess: Subprocess,
  options: ProcessStartOptions,
  stderr: ReturnType<typeof createTail>,
): Promise<ProcessResult> {
  const { child, leader, context } = subprocess
  const guard = (onLine: (line: string) => void) => (line: string) => {
    try {
      onLine(line)
    } catch (error) {
      // An error thrown here would end the whole platform, so only this process is stopped.
      context.log.error(
        { err: error, pid: subprocess.pid },
        'reading a line of a process failed; the process is stopped',
      )
      subprocess.stop('canceled')
    }
  }
  const lines = createLineSplitter(options.lineBytesMax, guard(options.onLine))
  let over = false
  child.stdout.on('data', (chunk: Uint8Array) => {
    if (over || lines.push(chunk)) return
    over = true
    // Stops reading: a process that prints without end would keep the platform busy until it is dead.
    child.stdout.destroy()
    subprocess.stop('output_too_large')
  })
  const errorLines = options.onErrorLine && createLineSplitter(ERROR_LINE_BYTES_MAX, guard(options.onErrorLine))
  child.stderr.on('data', (chunk: Uint8Array) => {
    stderr.push(chunk)
    errorLines?.push(chunk)
  })
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

/** Resolves when the system has taken the text, so that a caller that waits is never far ahead of the process. */
function write({ child: { stdin } }: Subprocess, text: string): Promise<boolean> {
  if (!stdin.writable || stdin.writableLength > WRITE_BYTES_MAX) return Promise.resolve(false)
  return new Promise((resolve) => {
    // A destroyed pipe calls back with an error. The exit of the process reports that it is gone.
    stdin.write(text, (error) => resolve(error === undefined || error === null))
  })
}

/** Closes stdin first: an agent that exits by itself has saved its session. */
async function stop(subprocess: Subprocess, ended: Promise<ProcessResult>): Promise<ProcessResult> {
  const { stdin } = subprocess.child
  // Its stdin was closed before, so it already had its time to exit.
  if (stdin.writableEnded) subprocess.stop('canceled')
  stdin.end()
  const timer = setTimeout(() => subprocess.stop('canceled'), INPUT_END_GRACE_MS)
  void subprocess.leader.exited.then(() => clearTimeout(timer))
  return ended
}

/**
 * Returns a cheap clock in the unit of start times. In a container the uptime may be the container's while start times
 * are the machine's; the start time of the process that has just started gives the offset.
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
    // The process has already ended, so killChildrenSince will find nothing.
    return uptimeTicks
  }
}

async function killChildrenSince({ pid, options, context }: Subprocess, moment: number): Promise<boolean> {
  if (process.platform !== 'linux') return false
  const value = markValue(context.owner, options.mark)
  const killed = await killMarked((found) => found === value, { since: moment, except: pid })
  if (killed.pids.size > 0)
    context.log.info({ pids: [...killed.pids] }, 'killed the processes that a cancelled turn started')
  return killed.complete
}

const NEWLINE = 0x0a
const RETURN = 0x0d

interface LineSplitter {
  /** False once a line is longer than the limit; from then on no line is emitted. */
  push(chunk: Uint8Array): boolean
  /** Emits the bytes after the last newline as a line. */
  end(): void
}

/**
 * Splits bytes into lines at `\n` and drops a `\r` before it. A character that spans two chunks stays whole.
 * Invariant: the buffer holds at most one line of `lineBytesMax`; after a longer line it emits nothing more.
 */
function createLineSplitter(lineBytesMax: number, onLine: (line: string) => void): LineSplitter {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let over = false
  const emit = (last: Uint8Array) => {
    const whole = held.length === 0 ? last : Buffer.concat([...held, last])
    held = []
    heldBytes = 0
    const line = whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole
    onLine(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8'))
  }
  const tooLong = (bytes: number): boolean => {
    over = heldBytes + bytes > lineBytesMax
    if (over) held = []
    return over
  }
  return {
    push(chunk) {
      let start = 0
      while (!over) {
        const at = chunk.indexOf(NEWLINE, start)
        const piece = chunk.subarray(start, at < 0 ? chunk.length : at)
        if (tooLong(piece.length)) break
        if (at < 0) {
          if (piece.length > 0) held.push(piece)
          heldBytes += piece.length
          return true
        }
        emit(piece)
        start = at + 1
      }
      return !over
    },
    end() {
      if (!over && heldBytes > 0) emit(new Uint8Array())
    },
  }
}
