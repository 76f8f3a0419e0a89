/**
 * The way out when a program no longer speaks the protocol in which it is kept warm: the backend goes on with one
 * process a message, from that very turn on, says so once in the log and in the status of every turn. Over the seam
 * itself, so that each backend only says how it is built in either mode. Invariant: a turn is begun again only where
 * the agent cannot have begun it, and what a person would have been asked about is refused, never allowed.
 */
import type { Log } from '../../../log.ts'
import type { Backend, BackendEvent, Drift, Turn } from '../../backend.ts'
import { driftIn } from '../failure/drift.ts'
import type { CliSettings } from './cli-options.ts'

const ONE_SHOT_NOTICE = 'running one-shot without streaming'

/** `create` builds the backend for the settings that it is given. */
export function withOneShotFallback(
  settings: CliSettings,
  log: Log,
  create: (settings: CliSettings) => Backend,
): Backend {
  if (settings.mode === 'oneshot') return create(settings)
  return new FallbackBackend(create(settings), log, () => create(oneShotSettings(settings)))
}

/** Nobody can be asked in a one-shot. */
function oneShotSettings(settings: CliSettings): CliSettings {
  const permission = settings.permission === 'ask' ? 'allowed_tools' : settings.permission
  return { ...settings, mode: 'oneshot', permission }
}

class FallbackBackend implements Backend {
  readonly name: string
  readonly stallMs?: number
  private readonly warm: Backend
  private readonly log: Log
  private readonly createOneShot: () => Backend
  private oneShot: Backend | undefined
  /** What is missing of the warm way, once that is known. */
  private drift: string | undefined
  private closed = false

  constructor(warm: Backend, log: Log, createOneShot: () => Backend) {
    this.name = warm.name
    if (warm.stallMs !== undefined) this.stallMs = warm.stallMs
    this.warm = warm
    this.log = log
    this.createOneShot = createOneShot
  }

  validate(signal: AbortSignal) {
    return this.warm.validate(signal)
  }

  /** Where the turn has not begun and is to be run the other way, its end is kept. */
  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<BackendEvent> {
    if (this.drift === undefined) {
      let hasBegun = false
      let drift: string | undefined
      for await (const event of this.warm.run(turn, signal)) {
        if (event.type === 'failed' && !hasBegun && !signal.aborted && !this.closed) drift = driftIn(event.error)
        if (drift !== undefined) break
        hasBegun ||= event.type !== 'activity' && event.type !== 'status'
        yield event
      }
      if (drift === undefined) return
      this.fall(drift)
    }
    yield { type: 'status', text: `${ONE_SHOT_NOTICE}: ${this.drift}` }
    // After the end a turn is for the one that has been closed: it cancels it before it begins.
    const backend = this.closed ? this.warm : this.getOneShot()
    yield* backend.run(turn, signal)
  }

  /** Of one mode, and where that has drifted of the other: only what neither can do is without a way out. */
  async probe(signal: AbortSignal): Promise<readonly Drift[]> {
    const missing = (await this.warm.probe?.(signal)) ?? []
    if (missing.every(({ instead }) => instead !== undefined)) return missing
    const also = (await this.getOneShot().probe?.(signal)) ?? []
    const known = new Set(missing.map((drift) => drift.missing))
    if (also.length > 0) return [...missing, ...also.filter((drift) => !known.has(drift.missing))]
    return missing.map((drift) => ({ instead: ONE_SHOT_NOTICE, ...drift }))
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.all([this.warm.close(), this.oneShot?.close()])
  }

  /** Turns may come here together: the first one warns. */
  private fall(drift: string): void {
    if (this.drift !== undefined) return
    this.drift = drift
    const asked = 'what a person would be asked about is refused'
    this.log.warn({ backend: this.name, drift }, `backend "${this.name}": ${drift}, ${ONE_SHOT_NOTICE}; ${asked}`)
  }

  private getOneShot(): Backend {
    this.oneShot ??= this.createOneShot()
    return this.oneShot
  }
}
