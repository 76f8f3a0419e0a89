/** How a command that runs for long is stopped, and what does not stop it. Shared by `up` and `connect`. */
import { EXIT_FAILED } from '../command-line.ts'

export interface StopSignals {
  readonly first: Promise<NodeJS.Signals>
  readonly second: Promise<NodeJS.Signals>
  stopListening(): void
}

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Listens from before the start, so that a signal while starting is a stop too and not a lost one. */
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

/** `molecule up | head` closes the pipe after a line; what runs for long must not end by that. */
export function ignoreClosedOutput(): () => void {
  const ignore = () => undefined
  const streams = [process.stdout, process.stderr]
  for (const stream of streams) stream.on('error', ignore)
  return () => {
    for (const stream of streams) stream.off('error', ignore)
  }
}
