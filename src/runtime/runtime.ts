/**
 * The runtime takes leases from an inbox, runs one turn for each and settles it. It knows no door, and the inbox may be
 * remote, so the same runtime serves the platform and a bridge on a laptop.
 * Invariant: every lease ends in a settle, and a reply is offered to the inbox until the inbox has stored it.
 */
import type { Backend, Decision } from '../backends/backend.ts'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import {
  type Checkpoint,
  type Inbox,
  type Lease,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type Worker,
} from '../inbox/inbox.ts'
import { type Log, maskPatterns } from '../log.ts'
import { countTurn, type Metrics } from '../metrics.ts'
import type { Brief } from '../protocol/brief.ts'
import { sleep } from '../wait.ts'
import { createBackendPool } from './backend-pool.ts'
import { explainFailure } from './failure-sentence.ts'
import { type StopReason, settleTurn } from './settle-turn.ts'
import { runTurn, type TurnContext } from './turn.ts'
import type { TurnAsks } from './turn-asks.ts'

/** A third of the lease time, so that two renewals may fail before another worker takes over. */
const RENEW_MS = 10_000
/** How long a drained turn may try to store its outcome; then the message runs again. */
const DRAIN_SETTLE_MS = 5000
/** The delay before the next call to an inbox that failed. */
const TAKE_RETRY_MS = 1000

export interface RuntimeOptions {
  readonly inbox: Inbox
  readonly worker: Worker
  readonly clock: Clock
  readonly log: Log
  readonly brief: (lease: Lease) => Promise<Brief>
  /** Builds the backend of a brief. Throws `bad_config`. */
  readonly build: (brief: Brief) => Backend
  /** Masks secrets in the messages of programs before they are stored. */
  readonly mask?: (text: string) => string
  readonly metrics?: Metrics
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

export interface Runtime {
  /** Starts to take leases. */
  start(): void
  /** The next turn of the workspace gets a new backend. */
  retireBackend(workspaceId: string): void
  /** Takes no more leases, waits `graceMs` for running turns, then stops and releases them. Idempotent. */
  drain(graceMs: number): Promise<void>
}

interface RunningTurn {
  readonly lease: Lease
  readonly stop: AbortController
  /** Set when the turn has begun; receives the answers to its asks. */
  deliverAnswer?: TurnAsks['deliverAnswer']
  done: Promise<void>
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { inbox, clock, log } = options
  const pool = createBackendPool(options.build)
  const running = new Map<string, RunningTurn>()
  const taking = new AbortController()
  const leaving = new AbortController()
  let loop: Promise<void> = Promise.resolve()
  let cancelRenewal: (() => void) | undefined

  const begin = (lease: Lease) => {
    options.onCheckpoint?.('leased')
    const stop = new AbortController()
    const turn: RunningTurn = { lease, stop, done: Promise.resolve() }
    const onStanding = (standing: LeaseStanding) => {
      if (standing === 'stop') stop.abort('canceled' satisfies StopReason)
      if (standing === 'stale') stop.abort('stale' satisfies StopReason)
    }
    running.set(leaseId(lease), turn)
    const onAnswerReceiver: TurnContext['onAnswerReceiver'] = (deliverAnswer) => {
      turn.deliverAnswer = deliverAnswer
    }
    const isShuttingDown = () => taking.signal.aborted
    const context = { ...options, take: pool.take, onStanding, onAnswerReceiver, isShuttingDown }
    turn.done = runTurn(lease, context, stop.signal)
      .then((end) => {
        options.onCheckpoint?.('answered')
        const outcome = explainFailure(end.outcome, lease, { log, mask: options.mask ?? maskPatterns })
        if (options.metrics !== undefined) countTurn(options.metrics, outcome)
        const explained = { ...end, outcome }
        return settleTurn(lease, { inbox, clock, log, end: explained, leaving: leaving.signal }, stop.signal)
      })
      .catch((error) => log.error({ err: toMoleculeError(error), messageId: lease.messageId }, 'a turn threw'))
      .finally(() => running.delete(leaseId(lease)))
  }
  const halt = (key: LeaseKey, reason: StopReason) => running.get(leaseId(key))?.stop.abort(reason)
  const answer = (key: LeaseKey, askId: string, decision: Decision) =>
    running.get(leaseId(key))?.deliverAnswer?.(askId, decision)
  const renew = async () => {
    const leases = [...running.values()].map(({ lease }) => lease)
    if (leases.length === 0) return
    for (const [index, standing] of (await inbox.extend(leases)).entries()) {
      if (standing !== 'held') halt(leases[index] as Lease, standing === 'stop' ? 'canceled' : 'stale')
    }
  }
  const scheduleRenewal = () => {
    cancelRenewal = clock.after(RENEW_MS, () => {
      // A failed renewal stops no turn: only the answer that its epoch is stale does.
      renew().catch((error) => log.warn({ err: toMoleculeError(error) }, 'leases could not be renewed'))
      scheduleRenewal()
    })
  }
  const ended = () => Promise.all([...running.values()].map(({ done }) => done))

  return {
    start() {
      scheduleRenewal()
      loop = takeDirectives(options, { begin, halt, answer }, taking.signal)
    },
    retireBackend: pool.retire,
    async drain(graceMs) {
      taking.abort()
      await loop
      if (graceMs > 0) await Promise.race([ended(), sleep(clock, graceMs)])
      for (const { lease } of running.values()) halt(lease, 'drain')
      await Promise.race([ended(), sleep(clock, DRAIN_SETTLE_MS)])
      leaving.abort()
      await ended()
      cancelRenewal?.()
      await pool.close()
    },
  }
}

/** Takes directives until the signal aborts. Retries a failed call, because otherwise one error would end all work. */
async function takeDirectives(
  { inbox, worker, clock, log }: RuntimeOptions,
  turns: {
    begin(lease: Lease): void
    halt(key: LeaseKey, reason: StopReason): void
    answer(key: LeaseKey, askId: string, decision: Decision): void
  },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const directive of inbox.leases(worker, signal)) {
        if (directive.type === 'lease') turns.begin(directive.lease)
        if (directive.type === 'stop') turns.halt(directive.key, 'canceled')
        if (directive.type === 'answer') {
          turns.answer(directive.key, directive.askId, directive.parts === undefined ? 'denied' : 'allowed')
        }
      }
    } catch (error) {
      log.warn({ err: toMoleculeError(error) }, 'could not take work from the inbox; trying again')
      await sleep(clock, TAKE_RETRY_MS, signal)
    }
  }
}
