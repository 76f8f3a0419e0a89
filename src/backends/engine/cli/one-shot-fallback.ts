/**
 * The fallback when a program no longer speaks the protocol of a warm agent: from that turn on, the backend starts one
 * process for each message. It says so once in the log and in the status of every turn. It wraps two backends, one for
 * each mode. Invariant: a turn is started again only if the agent cannot have started it, and an action for which a
 * person would have been asked is refused, never allowed.
 */
import type { Log } from '../../../log.ts'
import type { Backend, BackendEvent, Drift, Turn } from '../../backend.ts'
import { driftIn } from '../failure/drift.ts'
import type { CliSettings } from './cli-options.ts'

const ONE_SHOT_NOTICE = 'running one-shot without streaming'

export function withOneShotFallback(
  settings: CliSettings,
  log: Log,
  create: (settings: CliSettings) => Backend,
): Backend {
  if (settings.mode !== 'session') return create(settings)
  const asks = settings.permission === 'ask'
  return new FallbackBackend(create(settings), { log, asks, createOneShot: () => create(oneShotSettings(settings)) })
}

/** A one-shot agent cannot ask a person. */
function oneShotSettings(settings: CliSettings): CliSettings {
  const permission = settings.permission === 'ask' ? 'allowed_tools' : settings.permission
  return { ...settings, mode: 'oneshot', permission }
}

interface FallbackOptions {
  readonly log: Log
  /** Whether the warm agent asks a person for permission. */
  readonly asks: boolean
  readonly createOneShot: () => Backend
}

class FallbackBackend implements Backend {
  readonly name: string
  readonly stallMs?: number
  readonly mcpToolName?: NonNullable<Backend['mcpToolName']>
  private readonly warm: Backend
  private readonly options: FallbackOptions
  private oneShot: Backend | undefined
  /** The missing feature, once it is known. */
  private drift: string | undefined
  private closed = false

  constructor(warm: Backend, options: FallbackOptions) {
    this.name = warm.name
    if (warm.stallMs !== undefined) this.stallMs = warm.stallMs
    if (warm.mcpToolName !== undefined) this.mcpToolName = warm.mcpToolName
    this.warm = warm
    this.options = options
  }

  validate(signal: AbortSignal) {
    return this.warm.validate(signal)
  }

  /** If the turn failed for drift before it started, its `failed` is dropped and the turn runs one-shot. */
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
    // A closed backend cancels the turn before it starts; a new one-shot backend would run it.
    const backend = this.closed ? this.warm : this.getOneShot()
    yield* backend.run(turn, signal)
  }

  /** Probes the warm mode and, if that has drifted, the one-shot mode. Drift of both modes has no way around it. */
  async probe(signal: AbortSignal): Promise<readonly Drift[]> {
    const missing = (await this.warm.probe?.(signal)) ?? []
    if (missing.every(({ instead }) => instead !== undefined)) return missing
    const also = (await this.getOneShot().probe?.(signal)) ?? []
    const known = new Set(missing.map((drift) => drift.missing))
    if (also.length > 0) return [...missing, ...also.filter((drift) => !known.has(drift.missing))]
    return missing.map((drift) => ({ instead: ONE_SHOT_NOTICE, ...drift }))
  }

  limits(): readonly string[] {
    const { drift, warm, oneShot, options } = this
    const own = [...(warm.limits?.() ?? []), ...(oneShot?.limits?.() ?? [])]
    return [...new Set(drift === undefined ? own : [...own, fallenText(drift, options)])]
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.all([this.warm.close(), this.oneShot?.close()])
  }

  /** Concurrent turns may call this: only the first one logs. */
  private fall(drift: string): void {
    if (this.drift !== undefined) return
    this.drift = drift
    const { log, asks } = this.options
    const lost = asks ? '; an action that needs permission is refused' : ''
    log.warn({ backend: this.name, drift }, `backend "${this.name}": ${drift}, ${ONE_SHOT_NOTICE}${lost}`)
  }

  private getOneShot(): Backend {
    this.oneShot ??= this.options.createOneShot()
    return this.oneShot
  }
}

function fallenText(drift: string, { asks }: FallbackOptions): string {
  const lost = asks ? ', and an action that needs your permission is refused' : ''
  const text = `each message starts a new process (${drift}): answers are not streamed${lost}`
  return `${text}; install what "molecule doctor" names, then restart the workspace`
}
