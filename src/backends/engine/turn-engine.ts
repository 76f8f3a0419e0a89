/**
 * The stream of a turn, for every backend that is not simply one process: `work` does the turn and says what happens
 * as it happens; here its words become the events, with exactly one end, a limit on what is kept for a slow reader, an
 * optional wall clock, and a `close` that ends all. Invariant: the stream ends only after `work` has, whichever way.
 */
import type { Clock } from '../../clock.ts'
import { TIMER_MS_MAX } from '../../clock.ts'
import { formatDuration } from '../../duration.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { BackendEvent } from '../backend.ts'

export type EndEvent = Extract<BackendEvent, { type: 'done' | 'failed' }>

export interface TurnStream {
  /** Everything but the end, which is what `work` resolves to. */
  emit(event: Exclude<BackendEvent, EndEvent>): void
  /** Stops the turn's wall clock while `waiting` does: a person is asked, and that time is not the agent's. */
  pauseDuring<T>(waiting: Promise<T>): Promise<T>
  /** Aborted when the turn is cancelled, its time is up, or nobody reads any more. */
  readonly signal: AbortSignal
}

/** Contract: ends soon after its signal is aborted, and leaves nothing of the turn behind. May throw MoleculeError. */
export type TurnWork = (stream: TurnStream) => Promise<EndEvent>

export interface TurnEngine {
  run(work: TurnWork, signal: AbortSignal): AsyncIterable<BackendEvent>
  /** Cancels what is running and waits for it; what is run later is cancelled before it starts. Idempotent. */
  close(): Promise<void>
}

export interface TurnEngineOptions {
  readonly clock: Clock
  /** Of text, for one turn: more fails it as `too_large`. */
  readonly outputBytesMax: number
  /** Wall clock; undefined = none. */
  readonly maxTimeMs?: number | undefined
}

export const OUTPUT_BYTES_MAX = 10 * 1024 * 1024

export function createTurnEngine(options: TurnEngineOptions): TurnEngine {
  const live: LiveTurns = new Map()
  let closed = false
  return {
    run: (work, signal) => runTurn(work, signal, { ...options, live, isClosed: () => closed }),
    async close() {
      closed = true
      for (const cancel of live.keys()) cancel.abort(canceled())
      await Promise.all(live.values())
    },
  }
}

/** A turn, by what ends it, and the promise of its end. */
type LiveTurns = Map<AbortController, Promise<EndEvent>>

interface EngineState extends TurnEngineOptions {
  readonly live: LiveTurns
  readonly isClosed: () => boolean
}

async function* runTurn(work: TurnWork, signal: AbortSignal, engine: EngineState): AsyncGenerator<BackendEvent> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(canceled())
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted || engine.isClosed()) stop.abort(canceled())
  const time = startTurnClock(engine, stop)
  const buffer = createEventBuffer(engine.outputBytesMax, stop)
  const working = runWork(work, { emit: buffer.emit, pauseDuring: time.pauseDuring, signal: stop.signal })
  engine.live.set(stop, working)
  let end: EndEvent | undefined
  void working.then((event) => {
    end = event
    buffer.wake()
  })
  try {
    while (end === undefined) {
      await buffer.news()
      // Not `yield*`, which takes twice as long over each.
      for (const event of buffer.take()) yield event
    }
    // What was told while the reader was busy with what came before.
    for (const event of buffer.take()) yield event
    yield end
  } finally {
    // Also when the reader walks away in the middle: nobody would ever stop what it began.
    time.stop()
    signal.removeEventListener('abort', onAbort)
    // After the end it reaches only who still waits for somebody's answer.
    stop.abort(end === undefined ? canceled() : TURN_OVER)
    await working
    engine.live.delete(stop)
  }
}

/** Never rejects. What ended the turn from outside is why it failed, whatever it made of it. */
async function runWork(work: TurnWork, stream: TurnStream): Promise<EndEvent> {
  const { signal } = stream
  if (signal.aborted) return { type: 'failed', error: toMoleculeError(signal.reason) }
  try {
    const end = await work(stream)
    return end.type === 'failed' && signal.aborted ? { ...end, error: toMoleculeError(signal.reason) } : end
  } catch (thrown) {
    return { type: 'failed', error: toMoleculeError(signal.aborted ? signal.reason : thrown) }
  }
}

/** From this many on, text that waits for its reader is one event. */
const BUFFERED_EVENTS_MAX = 256

/** Events on their way to a reader that comes when it likes. */
function createEventBuffer(outputBytesMax: number, stop: AbortController) {
  let events: BackendEvent[] = []
  let bytes = 0
  let news = Promise.withResolvers<void>()
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
      news.resolve()
    },
    wake: () => news.resolve(),
    news: () => news.promise,
    take(): readonly BackendEvent[] {
      const taken = events
      events = []
      news = Promise.withResolvers()
      return taken
    },
  }
}

interface TurnClock {
  readonly pauseDuring: TurnStream['pauseDuring']
  stop(): void
}

/** The wall clock of a turn; it stands while anybody who was asked has not answered. */
function startTurnClock({ clock, maxTimeMs }: EngineState, stop: AbortController): TurnClock {
  let leftMs = maxTimeMs ?? Number.POSITIVE_INFINITY
  let sinceMs = clock.monotonicMs()
  let waiting = 0
  let ended = false
  let cancelTimer: (() => void) | undefined
  const count = () => {
    leftMs -= clock.monotonicMs() - sinceMs
    sinceMs = clock.monotonicMs()
    if (leftMs <= 0) stop.abort(timedOut(maxTimeMs ?? 0))
    else run()
  }
  const run = () => {
    sinceMs = clock.monotonicMs()
    // In steps, because one timer cannot be longer than TIMER_MS_MAX.
    if (maxTimeMs !== undefined && !ended) cancelTimer = clock.after(Math.min(leftMs, TIMER_MS_MAX), count)
  }
  const halt = () => {
    cancelTimer?.()
    leftMs -= clock.monotonicMs() - sinceMs
  }
  run()
  return {
    async pauseDuring(answer) {
      if (waiting === 0) halt()
      waiting += 1
      try {
        return await answer
      } finally {
        waiting -= 1
        if (waiting === 0) run()
      }
    },
    stop() {
      ended = true
      cancelTimer?.()
    },
  }
}

const canceled = () => new MoleculeError('canceled', 'the turn was cancelled')

/** Made once: an error takes its time to look where it comes from, and every turn ends. */
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
