/**
 * A subprocess that runs once: fed its whole input, read within limits, its result given when it has ended. What the
 * end means is for the backend to say. Invariant: a run resolves once, always, never rejects, and by then its tree is
 * dead (escapees of a run that ended by itself: about a second later).
 */
import { TIMER_MS_MAX } from '../clock.ts'
import { onAbort } from '../wait.ts'
import { createCapture, createTail } from './output.ts'
import type { ProcessResult, ProcessRunOptions } from './processes.ts'
import {
  notStartedResult,
  type ProcessContext,
  type Subprocess,
  spawnSubprocess,
  superviseToEnd,
} from './subprocess.ts'

/** Registers the run before it returns, so that a `close` right after finds it. */
export async function runOnce(
  options: ProcessRunOptions,
  signal: AbortSignal,
  context: ProcessContext,
): Promise<ProcessResult> {
  const subprocess = spawnSubprocess(options, context)
  if (subprocess instanceof Promise) return notStartedResult('spawn_failed', await subprocess)
  const result = supervise(subprocess, options, signal)
  context.subprocesses.set(subprocess, result)
  return result.finally(() => context.subprocesses.delete(subprocess))
}

async function supervise(
  subprocess: Subprocess,
  options: ProcessRunOptions,
  signal: AbortSignal,
): Promise<ProcessResult> {
  const { stdout, stderr } = readOutput(subprocess, options)
  subprocess.child.stdin.end(options.input)
  const release = watchLimits(subprocess, options, signal)
  const end = await superviseToEnd(subprocess, { onEnd: release, sweepNow: false })
  return {
    end: end === 'exited' && stdout.over() ? 'output_too_large' : end,
    exitCode: subprocess.leader.exitCode,
    signal: subprocess.leader.signal,
    stdout: stdout.bytes(),
    stderrTail: stderr.bytes(),
    stderrCut: stderr.cut(),
  }
}

function readOutput({ child, stop }: Subprocess, options: ProcessRunOptions) {
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
function watchLimits({ context, stop }: Subprocess, { timeoutMs }: ProcessRunOptions, signal: AbortSignal): () => void {
  const release = onAbort(signal, () => stop('canceled'))
  let cancelTimer: (() => void) | undefined
  // In steps, because one timer cannot be longer than TIMER_MS_MAX.
  const wait = (leftMs: number) => {
    cancelTimer = context.clock.after(Math.min(leftMs, TIMER_MS_MAX), () => {
      if (leftMs > TIMER_MS_MAX) wait(leftMs - TIMER_MS_MAX)
      else stop('timed_out')
    })
  }
  if (timeoutMs !== undefined) wait(timeoutMs)
  return () => {
    release()
    cancelTimer?.()
  }
}
