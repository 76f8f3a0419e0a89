/**
 * One turn of an agent that is started once for each message and prints lines. The CliTurn says how to call the program
 * and what its output means, in pure functions; this file runs the process. The turn ends with the line that says so,
 * not with the exit, because some programs stay for seconds after it. Invariant: no process outlives the stream, except
 * that an escapee of a program that exited by itself is killed seconds later.
 */
import type { Processes, ProcessResult, ProcessStartOptions } from '../../../process/processes.ts'
import { onAbort } from '../../../wait.ts'
import type { BackendEvent } from '../../backend.ts'
import { type EndEvent, OUTPUT_BYTES_MAX, type TurnStream, type TurnWork } from '../turn-engine.ts'

/** How long a program may take after its answer to save its session and exit. After that it is killed. */
const LINGER_MS = 1_000

export interface CliTurn {
  readonly run: Omit<ProcessStartOptions, 'onLine' | 'lineBytesMax' | 'stderrBytesKept'>
  /** Written to stdin, which is then closed. */
  readonly input: string
  /** The events of a line of stdout; an end event ends the turn. May throw for output that only a broken program prints. */
  readonly read: (line: string) => readonly BackendEvent[]
  /** The events of a line of stderr; an end event ends the turn. */
  readonly readError?: (line: string) => readonly BackendEvent[]
  /** The end of a run whose output had no end event, from its exit code, its stderr and all of its stdout. */
  readonly conclude: (result: ProcessResult, stdout: string) => EndEvent
  /** Undefined = LINGER_MS. */
  readonly lingerMs?: number
}

/** The turn as work for the turn engine. Too much output reaches `conclude` as `output_too_large`. */
export function cliTurnWork(processes: Processes, turn: CliTurn): TurnWork {
  return (stream) => runProcess(processes, turn, stream)
}

async function runProcess(processes: Processes, turn: CliTurn, stream: TurnStream): Promise<EndEvent> {
  const { emit, signal } = stream
  const seenEnd = Promise.withResolvers<EndEvent>()
  const output: string[] = []
  let bytes = 0
  let end: EndEvent | undefined
  const onEvent = (event: BackendEvent) => {
    if (end !== undefined) return
    if (event.type !== 'done' && event.type !== 'failed') return emit(event)
    end = event
    seenEnd.resolve(event)
  }
  const onLine = (line: string) => {
    bytes += Buffer.byteLength(line) + 1
    if (bytes > OUTPUT_BYTES_MAX) return void running.stop()
    output.push(line)
    try {
      for (const event of turn.read(line)) onEvent(event)
    } catch (thrown) {
      if (end === undefined) stream.fail(thrown)
    }
  }
  const { readError } = turn
  const running = processes.start({
    ...turn.run,
    lineBytesMax: OUTPUT_BYTES_MAX,
    sweepLater: true,
    onLine,
    ...(readError !== undefined && {
      onErrorLine: (line) => {
        for (const event of readError(line)) onEvent(event)
      },
    }),
  })
  const release = onAbort(signal, () => void running.stop())
  void running.write(turn.input).then(() => running.endInput())
  try {
    const first = await Promise.race([seenEnd.promise, running.ended.then(() => undefined)])
    if (first !== undefined) await waitForExit(running.ended, turn.lingerMs ?? LINGER_MS)
    const result = await running.stop()
    if (first !== undefined) return first
    return turn.conclude(bytes > OUTPUT_BYTES_MAX ? { ...result, end: 'output_too_large' } : result, output.join('\n'))
  } finally {
    release()
    await running.stop()
  }
}

/** Real time, not the clock, because it watches a process. */
async function waitForExit(ended: Promise<unknown>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([ended, promise])
  clearTimeout(timer)
}
