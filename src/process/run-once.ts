/**
 * Runs a subprocess once: writes its whole input, reads its output within limits, and resolves when it has ended. The
 * backend decides what the end means. Invariant: it always resolves, once, and never rejects. By then its tree is dead;
 * escapees of a run that ended by itself are killed about a second later.
 */
import { startTimeLimit } from '../clock.ts'
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

/** Registers the run synchronously, so that a `close` right after it finds the run. */
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
    // Stops reading: a command that prints without end would keep the platform busy until it is dead.
    child.stdout.destroy()
    stop('output_too_large')
  })
  child.stderr.on('data', (chunk: Uint8Array) => stderr.push(chunk))
  return { stdout, stderr }
}

/** Stops the run at its timeout or when the signal aborts. The returned function removes both. */
function watchLimits({ context, stop }: Subprocess, options: ProcessRunOptions, signal: AbortSignal): () => void {
  const release = onAbort(signal, () => stop('canceled'))
  const time = startTimeLimit(context.clock, options.timeoutMs, () => stop('timed_out'))
  options.onWait?.((over) => void time.pauseDuring(over))
  return () => {
    release()
    time.stop()
  }
}
