/**
 * A subprocess that runs once: fed its whole input, read within limits, its result given when it has ended. What the
 * end means is for the backend to say. Invariant: a run resolves once, always, never rejects, and by then its tree is
 * dead (escapees of a run that ended by itself: about a second later).
 */
import { TIMER_MS_MAX } from '../clock.ts'
import { beginLife, type House, type Life, seeToEnd, unstarted } from './life.ts'
import { createCapture, createTail } from './output.ts'
import type { RunOptions, RunResult } from './processes.ts'

/** Registers the run before it returns, so that a `close` right after finds it. */
export async function startRun(options: RunOptions, signal: AbortSignal, house: House): Promise<RunResult> {
  const life = beginLife(options, house)
  if (life instanceof Promise) return unstarted('spawn_failed', await life)
  const result = supervise(life, options, signal)
  house.lives.set(life, result)
  return result.finally(() => house.lives.delete(life))
}

async function supervise(life: Life, options: RunOptions, signal: AbortSignal): Promise<RunResult> {
  const { stdout, stderr } = readOutput(life, options)
  life.child.stdin.end(options.input)
  const release = watchLimits(life, options, signal)
  const end = await seeToEnd(life, { onEnd: release, sweepNow: false })
  return {
    end: end === 'exited' && stdout.over() ? 'output_too_large' : end,
    exitCode: life.leader.exitCode,
    signal: life.leader.signal,
    stdout: stdout.bytes(),
    stderrTail: stderr.bytes(),
    stderrCut: stderr.cut(),
  }
}

function readOutput({ child, stop }: Life, options: RunOptions) {
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
function watchLimits({ house, stop }: Life, { timeoutMs }: RunOptions, signal: AbortSignal): () => void {
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
