/**
 * The engine of every backend that starts one process a message: runs a description over the supervisor and turns
 * what the process prints into events while it prints. The description says what its output means; this file sees
 * that the stream has exactly one end and that no process outlives it, whichever way it ends.
 */
import { type MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Processes, ProcessResult, ProcessRunOptions } from '../../process/processes.ts'
import type { BackendEvent } from '../backend.ts'

type EndEvent = Extract<BackendEvent, { type: 'done' | 'failed' }>

/** One process for one message. */
export interface OneShot {
  readonly run: Omit<ProcessRunOptions, 'onOutput'>
  /** What a chunk of stdout means, as it comes. */
  readonly read: (chunk: Uint8Array) => readonly BackendEvent[]
  /** What the whole run means. */
  readonly end: (result: ProcessResult) => EndEvent
}

export interface OneShots {
  run(shot: OneShot, signal: AbortSignal): AsyncIterable<BackendEvent>
  /** Cancels what is running and waits for it; what is run later is cancelled before it starts. Idempotent. */
  close(): Promise<void>
}

export function createOneShots(processes: Processes): OneShots {
  const live: Live = new Map()
  let closed = false
  return {
    run: (shot, signal) => runOne(shot, signal, { processes, live, isClosed: () => closed }),
    async close() {
      closed = true
      for (const cancel of live.keys()) cancel.abort()
      await Promise.all(live.values())
    },
  }
}

type Live = Map<AbortController, Promise<void>>

interface Engine {
  readonly processes: Processes
  readonly live: Live
  readonly isClosed: () => boolean
}

async function* runOne(shot: OneShot, signal: AbortSignal, engine: Engine): AsyncGenerator<BackendEvent> {
  const cancel = new AbortController()
  const onAbort = () => cancel.abort()
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted || engine.isClosed()) cancel.abort()
  const { running, next } = startProcess(shot, cancel, engine.processes)
  engine.live.set(cancel, running)
  try {
    for (;;) {
      const { events, end } = await next()
      yield* events
      if (end === undefined) continue
      yield end
      return
    }
  } finally {
    // Also when the reader walks away in the middle: it reads no more, so nobody would ever stop the process.
    signal.removeEventListener('abort', onAbort)
    cancel.abort()
    await running
    engine.live.delete(cancel)
  }
}

interface Step {
  readonly events: readonly BackendEvent[]
  readonly end: EndEvent | undefined
}

interface Started {
  readonly running: Promise<void>
  /** Waits for more and hands it over; with the end come the last events. */
  readonly next: () => Promise<Step>
}

/** Bridges the supervisor's callbacks to a reader that comes when it likes. */
function startProcess(shot: OneShot, cancel: AbortController, processes: Processes): Started {
  let events: BackendEvent[] = []
  let end: EndEvent | undefined
  let defect: MoleculeError | undefined
  let news = Promise.withResolvers<void>()
  const onOutput = (chunk: Uint8Array) => {
    try {
      events.push(...shot.read(chunk))
    } catch (thrown) {
      // Thrown in here it would reach nobody and end the whole platform; so it ends this turn.
      defect ??= toMoleculeError(thrown)
      cancel.abort()
    }
    news.resolve()
  }
  const running = processes.run({ ...shot.run, onOutput }, cancel.signal).then((result) => {
    end = defect ? { type: 'failed', error: defect } : endOf(shot, result)
    news.resolve()
  })
  const next = async (): Promise<Step> => {
    await news.promise
    news = Promise.withResolvers()
    const step = { events, end }
    events = []
    return step
  }
  return { running, next }
}

function endOf(shot: OneShot, result: ProcessResult): EndEvent {
  try {
    return shot.end(result)
  } catch (thrown) {
    return { type: 'failed', error: toMoleculeError(thrown) }
  }
}
