/**
 * The stream of a turn, for every backend that starts a process or asks a model. `work` does the turn and emits events;
 * the engine passes them to the reader and adds the rest: exactly one end, a bounded buffer for a slow reader, an
 * optional time limit, and a `close` that ends every turn.
 * Invariant: the stream ends only after `work` has ended, also when the turn is cancelled or the reader stops reading.
 */
import { type Clock, startTimeLimit } from '../../clock.ts'
import { formatDuration } from '../../duration.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { createWakeUp, onAbort } from '../../wait.ts'
import type { BackendEvent, Turn } from '../backend.ts'

export type EndEvent = Extract<BackendEvent, { type: 'done' | 'failed' }>

export interface TurnStream {
  /** Emits any event but the end. The end is the value of `work`. */
  emit(event: Exclude<BackendEvent, EndEvent>): void
  /**
   * Ends the turn with this error. For the callbacks of a process: an error that they throw would reach no caller and
   * would end the whole platform.
   */
  fail(thrown: unknown): void
  /** Stops the turn's time limit until the promise settles: the time a person takes to answer is not the agent's. */
  pauseDuring<T>(waiting: Promise<T>): Promise<T>
  /** Aborts when the turn is cancelled, has failed, is out of time, or its reader has stopped reading. */
  readonly signal: AbortSignal
}

/** Contract: ends soon after its signal aborts, and leaves nothing of the turn behind. May throw MoleculeError. */
export type TurnWork = (stream: TurnStream) => Promise<EndEvent>

export interface TurnEngine {
  /** Starts nothing before the first event is read. `onWait` is that of the turn: its waits do not count as its time. */
  run(work: TurnWork, signal: AbortSignal, onWait?: Turn['onWait']): AsyncIterable<BackendEvent>
  /** Cancels the running turns and waits for their end. A later turn is cancelled before it starts. Idempotent. */
  close(): Promise<void>
}

export interface TurnEngineOptions {
  readonly clock: Clock
  /** Bytes of text in one turn. A turn with more fails as `too_large`. */
  readonly outputBytesMax: number
  /** Time limit of one turn; a longer turn fails as `timeout`. Undefined = none. */
  readonly maxTimeMs?: number | undefined
}

export const OUTPUT_BYTES_MAX = 10 * 1024 * 1024

export function createTurnEngine(options: TurnEngineOptions): TurnEngine {
  const live: LiveTurns = new Map()
  let closed = false
  return {
    run: (work, signal, onWait) => runTurn(work, signal, { ...options, onWait, live, isClosed: () => closed }),
    async close() {
      closed = true
      for (const stop of live.keys()) stop.abort(turnCanceled())
      await Promise.all(live.values())
    },
  }
}

/** The running turns: the controller that stops each, and the promise of its end. */
type LiveTurns = Map<AbortController, Promise<EndEvent>>

interface EngineState extends TurnEngineOptions {
  readonly onWait: Turn['onWait']
  readonly live: LiveTurns
  readonly isClosed: () => boolean
}

async function* runTurn(work: TurnWork, signal: AbortSignal, engine: EngineState): AsyncGenerator<BackendEvent> {
  const stop = new AbortController()
  const release = onAbort(signal, () => stop.abort(turnCanceled()))
  if (engine.isClosed()) stop.abort(turnCanceled())
  const time = startTimeLimit(engine.clock, engine.maxTimeMs, () => stop.abort(timedOut(engine.maxTimeMs ?? 0)))
  engine.onWait?.((over) => void time.pauseDuring(over))
  const buffer = createEventBuffer(engine.outputBytesMax, stop)
  const fail = (thrown: unknown) => stop.abort(toMoleculeError(thrown))
  const working = runWork(work, { emit: buffer.emit, fail, pauseDuring: time.pauseDuring, signal: stop.signal })
  engine.live.set(stop, working)
  let end: EndEvent | undefined
  void working.then((event) => {
    end = event
    buffer.wake()
  })
  try {
    while (end === undefined) {
      await buffer.waitForEvents()
      // Not `yield*`, which takes twice as long for each event.
      for (const event of buffer.take()) yield event
    }
    // The events that were emitted while the reader was busy with the earlier ones.
    for (const event of buffer.take()) yield event
    yield end
  } finally {
    // Without this, a reader that stops in the middle would leave the agent running.
    time.stop()
    release()
    // After a normal end, only a question that is still open listens to this.
    stop.abort(end === undefined ? turnCanceled() : TURN_OVER)
    await working
    engine.live.delete(stop)
  }
}

/** Never rejects. */
async function runWork(work: TurnWork, stream: TurnStream): Promise<EndEvent> {
  const { signal } = stream
  if (signal.aborted) return { type: 'failed', error: toMoleculeError(signal.reason) }
  try {
    const end = await work(stream)
    return end.type === 'failed' && signal.aborted ? { ...end, error: whyStopped(end.error, signal) } : end
  } catch (thrown) {
    return { type: 'failed', error: signal.aborted ? whyStopped(thrown, signal) : toMoleculeError(thrown) }
  }
}

/**
 * A stopped turn fails for the reason of the stop: the agent's own error is only a consequence of it. An error with the
 * same code is kept, because it has more details (the command, its stderr).
 */
function whyStopped(thrown: unknown, signal: AbortSignal): MoleculeError {
  const reason = toMoleculeError(signal.reason)
  return thrown instanceof MoleculeError && thrown.code === reason.code ? thrown : reason
}

/** When so many events wait for their reader, further text is added to the last event instead of a new one. */
const BUFFERED_EVENTS_MAX = 256

/** Events between `work`, which does not wait for the reader, and the reader. */
function createEventBuffer(outputBytesMax: number, stop: AbortController) {
  let events: BackendEvent[] = []
  let bytes = 0
  const added = createWakeUp()
  return {
    emit(event: Exclude<BackendEvent, EndEvent>) {
      const last = events.at(-1)
      if (event.type === 'text') bytes += Buffer.byteLength(event.delta)
      if (bytes > outputBytesMax) return stop.abort(tooLarge(outputBytesMax))
      if (event.type === 'text' && last?.type === 'text' && events.length >= BUFFERED_EVENTS_MAX) {
        events[events.length - 1] = { type: 'text', delta: last.delta + event.delta }
      } else if (event.type !== 'activity' || last?.type !== 'activity') {
        events.push(event)
      }
      added.wake()
    },
    wake: () => added.wake(),
    waitForEvents: () => added.wait(),
    take(): readonly BackendEvent[] {
      const taken = events
      events = []
      return taken
    },
  }
}

const ACTIVITY_INTERVAL_MS = 20_000

/** For a wait before the agent works, so that the stall timeout does not fire. */
export async function emitActivityDuring<T>(waiting: Promise<T>, clock: Clock, emit: TurnStream['emit']): Promise<T> {
  let cancelTimer: (() => void) | undefined
  const reportActivity = () => {
    cancelTimer = clock.after(ACTIVITY_INTERVAL_MS, () => {
      emit({ type: 'activity' })
      reportActivity()
    })
  }
  reportActivity()
  try {
    return await waiting
  } finally {
    cancelTimer?.()
  }
}

export const turnCanceled = (cause?: unknown) => new MoleculeError('canceled', 'the turn was cancelled', { cause })

/** Created once: an error records its stack, which takes time, and every turn ends. */
const TURN_OVER = new MoleculeError('canceled', 'the turn is over')

const timedOut = (ms: number) =>
  new MoleculeError('timeout', `the agent was not done after ${formatDuration(ms)} and was stopped`, {
    retryable: true,
    details: { timeout: formatDuration(ms) },
  })

const tooLarge = (limitBytes: number) =>
  new MoleculeError('too_large', `the agent wrote more than ${limitBytes} bytes and was stopped`, {
    details: { limitBytes },
  })
