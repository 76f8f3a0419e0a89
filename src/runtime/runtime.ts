/**
 * The runtime takes leases from an inbox, runs one turn for each and settles it. It knows no door, and the inbox may be
 * remote, so the same runtime serves the platform and a bridge on a laptop.
 * Invariant: every lease ends in a settle, and a reply is offered to the inbox until the inbox has stored it.
 */
import type { Backend } from '../backends/backend.ts'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import {
  type Checkpoint,
  type Inbox,
  type Lease,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type Outcome,
  type Worker,
} from '../inbox/worker.ts'
import { type Log, maskPatterns } from '../log.ts'
import { countTurn, type Metrics } from '../metrics.ts'
import type { Brief } from '../protocol/brief.ts'
import { sleep } from '../wait.ts'
import { createBackendPool } from './backend-pool.ts'
import { explainFailure } from './failure-sentence.ts'
import type { HandlerHealth } from './handler-health.ts'
import { type StopReason, settleTurn } from './settle-turn.ts'
import { runTurn, type TurnContext, type TurnControls, type TurnEnd } from './turn.ts'

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
  /** On a bridge: whether its handler works. */
  readonly handler?: HandlerHealth
  /** A turn has ended with this outcome, which is not stored yet. `limits` is that of its backend, if it has begun. */
  readonly onTurnEnd?: (workspaceId: string, outcome: Outcome, limits?: readonly string[]) => void
}

export interface Runtime {
  /** Starts to take leases. */
  start(): void
  /** The next turn of the workspace gets a new backend. */
  retireBackend(workspaceId: string): void
  /** The workspace of each running turn. */
  runningTurns(): readonly string[]
  /**
   * Takes no more leases, waits `graceMs` for running turns, then stops and releases them. Idempotent. Returns the workspace
   * of each turn that was stopped.
   */
  drain(graceMs: number): Promise<readonly string[]>
}

interface RunningTurn {
  readonly lease: Lease
  readonly stop: AbortController
  /** Set when the turn has begun. */
  controls?: TurnControls
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
      if (standing === 'stop' || standing === 'stale') halt(lease, standing === 'stop' ? 'canceled' : 'stale')
    }
    running.set(leaseId(lease), turn)
    const onBegun: TurnContext['onBegun'] = (controls) => void Object.assign(turn, { controls })
    const parts = { take: pool.take, isShuttingDown: () => taking.signal.aborted, onStanding, onBegun }
    turn.done = runTurn(lease, { ...options, ...parts }, stop.signal)
      .then((end) => {
        options.onCheckpoint?.('answered')
        const outcome = explainFailure(end.outcome, lease, { log, mask: options.mask ?? maskPatterns })
        reportEnd(lease, { ...end, outcome }, options)
        const settling = { inbox, clock, log, end: { ...end, outcome }, leaving: leaving.signal }
        return settleTurn(lease, settling, stop.signal)
      })
      .catch((error) => log.error({ err: toMoleculeError(error), messageId: lease.messageId }, 'a turn threw'))
      .finally(() => running.delete(leaseId(lease)))
  }
  const halt = (key: LeaseKey, reason: StopReason) => running.get(leaseId(key))?.stop.abort(reason)
  const controlsOf = (key: LeaseKey) => running.get(leaseId(key))?.controls
  const runningLeases = () => [...running.values()].map(({ lease }) => lease)
  const renew = async () => {
    const leases = runningLeases()
    if (leases.length === 0) return
    for (const [index, standing] of (await inbox.extend(leases)).entries()) {
      const lease = leases[index] as Lease
      // Also after a lost directive: one that says that the wait is over would otherwise be missing for ever.
      if (standing === 'waiting' || standing === 'held') controlsOf(lease)?.setWaiting(standing === 'waiting')
      else halt(lease, standing === 'stop' ? 'canceled' : 'stale')
    }
  }
  const scheduleRenewal = () => {
    cancelRenewal = clock.after(RENEW_MS, () => {
      // A failed renewal stops no turn: only the answer that its epoch is stale does.
      renew().catch((error) => log.warn({ err: toMoleculeError(error) }, 'leases could not be renewed'))
      scheduleRenewal()
    })
  }
  return {
    start() {
      scheduleRenewal()
      loop = takeDirectives(options, { begin, halt, controlsOf }, taking.signal)
    },
    retireBackend: pool.retire,
    runningTurns: () => workspacesOf(runningLeases()),
    async drain(graceMs) {
      taking.abort()
      await loop
      if (graceMs > 0) await Promise.race([allEnded(running), sleep(clock, graceMs)])
      const cutOff = runningLeases()
      for (const lease of cutOff) halt(lease, 'drain')
      await Promise.race([allEnded(running), sleep(clock, DRAIN_SETTLE_MS)])
      leaving.abort()
      await allEnded(running)
      cancelRenewal?.()
      await pool.close()
      return workspacesOf(cutOff)
    },
  }
}

const workspacesOf = (leases: readonly Lease[]): string[] => leases.map(({ workspaceId }) => workspaceId)

const allEnded = (running: ReadonlyMap<string, RunningTurn>) =>
  Promise.all([...running.values()].map(({ done }) => done))

function reportEnd(lease: Lease, { outcome, limits }: TurnEnd, { metrics, onTurnEnd, handler }: RuntimeOptions): void {
  if (metrics !== undefined) countTurn(metrics, outcome)
  onTurnEnd?.(lease.workspaceId, outcome, limits)
  handler?.ended(lease, outcome)
}

/** Takes directives until the signal aborts. Retries a failed call, because otherwise one error would end all work. */
async function takeDirectives(
  { inbox, worker, clock, log }: RuntimeOptions,
  turns: {
    begin(lease: Lease): void
    halt(key: LeaseKey, reason: StopReason): void
    controlsOf(key: LeaseKey): TurnControls | undefined
  },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const directive of inbox.leases(worker, signal)) {
        if (directive.type === 'lease') turns.begin(directive.lease)
        if (directive.type === 'stop') turns.halt(directive.key, 'canceled')
        if (directive.type === 'waiting') turns.controlsOf(directive.key)?.setWaiting(directive.waiting)
        if (directive.type === 'answer') {
          const decision = directive.parts === undefined ? 'denied' : 'allowed'
          turns.controlsOf(directive.key)?.deliverAnswer(directive.askId, decision)
        }
      }
    } catch (error) {
      log.warn({ err: toMoleculeError(error) }, 'could not take work from the inbox; trying again')
      await sleep(clock, TAKE_RETRY_MS, signal)
    }
  }
}
