/** Signals of commands that run until they are stopped: `up`, `connect`, `doctor`. */
import { EXIT_FAILED } from '../run-program.ts'

export interface StopSignals {
  readonly first: Promise<NodeJS.Signals>
  readonly second: Promise<NodeJS.Signals>
  stopListening(): void
}

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Call it before the start, so that a signal during the start is not lost. A third signal exits at once. */
export function listenForStopSignals(): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>()
  const second = Promise.withResolvers<NodeJS.Signals>()
  let count = 0
  const listener = (signal: NodeJS.Signals) => {
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
export async function closeNow(close: () => Promise<void>): Promise<void> {
  const deadline = setTimeout(() => process.exit(EXIT_FAILED), CLOSE_NOW_TIMEOUT_MS)
  try {
    await close()
  } finally {
    clearTimeout(deadline)
  }
}
