/** Signals of commands that run until they are stopped: `up`, `connect`, `doctor`. */
import { formatWait } from '../../duration.ts'
import { withoutControls } from '../../printable.ts'
import { EXIT_FAILED } from '../exit-codes.ts'
import type { Environment } from './terminal.ts'

export interface StopSignals {
  readonly first: Promise<NodeJS.Signals>
  readonly second: Promise<NodeJS.Signals>
  stopListening(): void
}

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** The same signal counts once in this time. A person who has read "press Ctrl-C again" needs longer. */
const REPEAT_MS = 1000

/**
 * Call it before the start, so that a signal during the start is not lost. A third signal exits at once.
 *
 * Prevents that one Ctrl-C under `npm start` skips the drain: the terminal sends SIGINT to npm and to this process, and npm
 * forwards its own, so it arrives twice. A process cannot see who sent a signal, so a repeat within REPEAT_MS counts as the
 * same one. Without npm a repeated SIGTERM is no copy: no terminal sends it, and a supervisor may send a second one soon.
 */
export function listenForStopSignals(env: Environment): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>()
  const second = Promise.withResolvers<NodeJS.Signals>()
  const isUnderNpm = env['npm_lifecycle_event'] !== undefined
  const countedAtMs = new Map<NodeJS.Signals, number>()
  let count = 0
  const listener = (signal: NodeJS.Signals) => {
    const nowMs = performance.now()
    const sinceMs = nowMs - (countedAtMs.get(signal) ?? Number.NEGATIVE_INFINITY)
    if (sinceMs < REPEAT_MS && (isUnderNpm || signal !== 'SIGTERM')) return
    countedAtMs.set(signal, nowMs)
    count++
    if (count === 1) first.resolve(signal)
    if (count === 2) second.resolve(signal)
    if (count > 2) process.exit(EXIT_FAILED)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, listener)
  return {
    first: first.promise,
    second: second.promise,
    stopListening() {
      for (const signal of STOP_SIGNALS) process.off(signal, listener)
    },
  }
}

/** What a stopping process waits for: `waiting up to 10 s for 2 running turns (ana, bob); press ...`. A turn is its workspace's name. */
export function drainText(turns: readonly string[], drainMs: number): string {
  if (turns.length === 0) return 'no turn is running'
  const subject = turns.length === 1 ? '1 running turn' : `${turns.length} running turns`
  return (
    `waiting up to ${formatWait(drainMs)} for ${subject} (${namesText(turns)}); ` +
    `press Ctrl-C again to stop ${turns.length === 1 ? 'it' : 'them'} now`
  )
}

/** What became of the turns that took longer than the drain. */
export function cutOffText(turns: readonly string[]): string {
  const [turn, message] =
    turns.length === 1 ? ['1 turn was', 'its message runs'] : [`${turns.length} turns were`, 'their messages run']
  return `${turn} stopped before the end (${namesText(turns)}); ${message} again at the next start.\n`
}

function namesText(turns: readonly string[]): string {
  const names = [...new Set(turns)].map(withoutControls)
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : ''
  return `${names.slice(0, NAMES_MAX).join(', ')}${more}`
}

const NAMES_MAX = 5

/** Prevents the platform's end when a reader closes its output, as in `molecule up | head`. Returns the undo. */
export function ignoreClosedOutput(): () => void {
  const ignore = () => undefined
  const streams = [process.stdout, process.stderr]
  for (const stream of streams) stream.on('error', ignore)
  return () => {
    for (const stream of streams) stream.off('error', ignore)
  }
}

/** The processes of running turns have this long to die at the second signal; then this process exits. */
const CLOSE_NOW_TIMEOUT_MS = 2000

/** For the second signal: a close without a drain also ends the close that is already under way. */
export async function closeNow(close: () => Promise<unknown>): Promise<void> {
  const deadline = setTimeout(() => process.exit(EXIT_FAILED), CLOSE_NOW_TIMEOUT_MS)
  try {
    await close()
  } finally {
    clearTimeout(deadline)
  }
}
