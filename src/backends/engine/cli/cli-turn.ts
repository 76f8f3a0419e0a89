/**
 * The engine of agents that are started once a message and print JSON: one object at the end, or one a line. The
 * description says how the program is called and what its output means, in pure functions; here the process is run.
 * The turn ends with the event that says so and not with the exit, because some stay for seconds after it. Invariant:
 * no process outlives the stream, but that an escapee of a program that left by itself is killed seconds later.
 */
import type { Processes, ProcessResult, ProcessStartOptions } from '../../../process/processes.ts'
import { onAbort } from '../../../wait.ts'
import type { BackendEvent } from '../../backend.ts'
import { type EndEvent, OUTPUT_BYTES_MAX, type TurnStream, type TurnWork } from '../turn-engine.ts'

/** What a program that has answered gets to save its session and leave. */
const LINGER_MS = 1_000

export interface CliTurn {
  readonly run: Omit<ProcessStartOptions, 'onLine' | 'lineBytesMax' | 'stderrBytesKept'>
  /** Written to stdin, which is then closed. */
  readonly input: string
  /** What a line of stdout means; an end among it ends the turn. Throws where only a broken program could say it. */
  readonly read: (line: string) => readonly BackendEvent[]
  /** What a run means that ended without an end: its exit code, its stderr, all of its stdout. */
  readonly conclude: (result: ProcessResult, stdout: string) => EndEvent
  /** Milliseconds; undefined = the house's. */
  readonly lingerMs?: number
}

/** As work for `Turns`. A flood ends as `output_too_large` in what `conclude` is given. */
export function cliTurnWork(processes: Processes, turn: CliTurn): TurnWork {
  return (stream) => runProcess(processes, turn, stream)
}

async function runProcess(processes: Processes, turn: CliTurn, stream: TurnStream): Promise<EndEvent> {
  const { emit, signal } = stream
  const seen = Promise.withResolvers<EndEvent>()
  const output: string[] = []
  let bytes = 0
  let end: EndEvent | undefined
  const hear = (event: BackendEvent) => {
    if (end !== undefined) return
    if (event.type !== 'done' && event.type !== 'failed') return emit(event)
    end = event
    seen.resolve(event)
  }
  const onLine = (line: string) => {
    bytes += Buffer.byteLength(line) + 1
    if (bytes > OUTPUT_BYTES_MAX) return void running.stop()
    output.push(line)
    try {
      for (const event of turn.read(line)) hear(event)
    } catch (thrown) {
      if (end === undefined) stream.fail(thrown)
    }
  }
  const running = processes.start({
    ...turn.run,
    lineBytesMax: OUTPUT_BYTES_MAX,
    sweepLater: true,
    onLine,
  })
  const release = onAbort(signal, () => void running.stop())
  void running.write(turn.input).then(() => running.endInput())
  try {
    const first = await Promise.race([seen.promise, running.ended.then(() => undefined)])
    if (first !== undefined) await waitForExit(running.ended, turn.lingerMs ?? LINGER_MS)
    const result = await running.stop()
    if (first !== undefined) return first
    return turn.conclude(bytes > OUTPUT_BYTES_MAX ? { ...result, end: 'output_too_large' } : result, output.join('\n'))
  } finally {
    release()
    await running.stop()
  }
}

/** Real time: it watches a process. */
async function waitForExit(ended: Promise<unknown>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([ended, promise])
  clearTimeout(timer)
}
