/**
 * Bridges: workers on other machines. A bridge polls for work; each call waits until there is a directive. While a call
 * waits, the bridge has a worker queue here like any worker, so admission can lease to it at once. Between two calls
 * only the store knows what the bridge holds. Invariant: a lease that is stored for a bridge, and that the bridge does
 * not name in its next call, is freed at once. Its answer was lost, or the bridge was restarted.
 */
import { MoleculeError } from '../../errors.ts'
import { onAbort } from '../../wait.ts'
import type { BridgeCall, Bridges } from '../bridges.ts'
import { freeLease } from '../commands/lose.ts'
import type { KeepSessionOn } from '../commands/record-outcome.ts'
import { findHolder, findLeasesOf, type LeaseHolder } from '../rows/lease.ts'
import { type Directive, type Inbox, type LeaseKey, leaseId } from '../worker.ts'
import type { InboxContext } from './context.ts'
import { fillQueue, releaseLease, settleTurn } from './directives.ts'
import { createTurnBytes, TURN_BYTES_MAX } from './turn-bytes.ts'

/** Bridges of one workspace that may wait for work at a time; one more gets 429 with `Retry-After`. */
export const BRIDGES_MAX = 64
const BRIDGES_RETRY_AFTER_MS = 10_000

export interface BridgesOptions {
  readonly inbox: Inbox
  readonly keepSessionOn: KeepSessionOn
}

interface WaitingCall {
  readonly workspaceId: string
  readonly stop: AbortController
  readonly ended: Promise<void>
}

export function createBridges(context: InboxContext, { inbox, keepSessionOn }: BridgesOptions): Bridges {
  const { store } = context
  const waiting = new Map<string, WaitingCall>()
  const turnBytes = createTurnBytes()
  const own = async <T>(key: LeaseKey, work: () => Promise<T>): Promise<T | 'stale'> => {
    const holder = await store.read(() => findHolder(key))
    if (holder === undefined) return 'stale'
    requireBridgeTurn(key, holder)
    return await work()
  }
  /** Runs a call that stores `value`. A turn past its limit ends here, and its bridge learns that it has no lease. */
  const storing = async <T>(key: LeaseKey, value: unknown, work: () => Promise<T>): Promise<T | 'stale'> =>
    await own(key, async () => {
      if (turnBytes.add(key, value)) return await work()
      turnBytes.forget(key)
      await inbox.settle(key, { type: 'dead', failure: { code: 'too_large', message: TOO_LARGE } })
      return 'stale'
    })
  return {
    async lease(call, signal) {
      const worker = workerName(call)
      for (let before = waiting.get(worker); before !== undefined; before = waiting.get(worker)) {
        before.stop.abort()
        await before.ended
      }
      requireCapacity(waiting, call.workspaceId)
      const stop = new AbortController()
      const ended = Promise.withResolvers<void>()
      waiting.set(worker, { workspaceId: call.workspaceId, stop, ended: ended.promise })
      const removeListener = onAbort(signal, () => stop.abort())
      try {
        return await takeWork(context, call, stop.signal)
      } finally {
        removeListener()
        waiting.delete(worker)
        ended.resolve()
      }
    },
    begin: (key, text) => own(key, () => inbox.begin(key, text)),
    extend: (keys) => Promise.all(keys.map((key) => own(key, async () => (await inbox.extend([key]))[0] ?? 'stale'))),
    append: (key, events) => storing(key, events, () => inbox.append(key, events)),
    settle: (key, { outcome, unsent, host }) =>
      storing(key, { outcome, unsent }, async () => {
        const answer = await settleTurn(context, key, { outcome, unsent, keepSession: keepSessionOn(host) })
        turnBytes.forget(key)
        return answer
      }),
    suspend: (key) => own(key, () => inbox.suspend(key)),
    resume: (key) => own(key, () => inbox.resume(key)),
    ask: (key, ask) => storing(key, ask, () => inbox.ask(key, ask)),
    isConnected: (workspaceId) => waiting.values().some((call) => call.workspaceId === workspaceId),
  }
}

const TOO_LARGE = `the turn has stored more than ${TURN_BYTES_MAX / 1024 / 1024} MiB of events and output`

/** No worker of a platform has this prefix. The workspace is part of it: two bridges may choose the same name. */
const bridgePrefix = (workspaceId: string): string => `bridge.${workspaceId}.`
const workerName = ({ workspaceId, bridge }: BridgeCall): string => `${bridgePrefix(workspaceId)}${bridge}`

/**
 * Prevents a forged answer: an agent has the token of its workspace, and could end the turn that the platform runs for
 * it with any result. A turn that has ended or was taken over is left to the call itself, which finds it stale.
 */
function requireBridgeTurn({ workspaceId, epoch }: LeaseKey, { worker, leaseEpoch }: LeaseHolder): void {
  if (worker === null || leaseEpoch !== epoch || worker.startsWith(bridgePrefix(workspaceId))) return
  throw new MoleculeError('forbidden', 'the platform itself runs this turn; only its own worker may report on it')
}

function requireCapacity(waiting: ReadonlyMap<string, WaitingCall>, workspaceId: string): void {
  const here = waiting.values().filter((call) => call.workspaceId === workspaceId)
  if ([...here].length < BRIDGES_MAX) return
  const message = `${BRIDGES_MAX} bridges wait for work of this workspace already`
  const details = { retryAfterMs: BRIDGES_RETRY_AFTER_MS }
  throw new MoleculeError('too_many_requests', message, { retryable: true, details })
}

async function takeWork(context: InboxContext, call: BridgeCall, signal: AbortSignal): Promise<Directive[]> {
  const { workerQueues, clock } = context
  const worker = { id: workerName(call), workspaces: [call.workspaceId] }
  const holding = await reconcile(context, call)
  if (signal.aborted) return []
  const queue = workerQueues.open(worker, { leasesMax: call.leasesMax, holding })
  let directives: Directive[] = []
  try {
    await fillQueue(context, queue)
    const first = await queue.take(signal, (callback) => clock.after(call.waitMs, callback))
    directives = first === undefined ? queue.clear() : [first, ...queue.clear()]
  } finally {
    workerQueues.close(queue)
    // The caller has gone: its directives would reach no worker.
    const undelivered = signal.aborted ? [...directives, ...queue.clear()] : queue.clear()
    for (const directive of undelivered) if (directive.type === 'lease') releaseLease(context, directive.lease)
  }
  return signal.aborted ? [] : directives
}

/** Frees the leases that the bridge does not hold; returns the ids of those that take its capacity. */
async function reconcile(
  { store, held, waitingLeases, changed }: InboxContext,
  call: BridgeCall,
): Promise<Set<string>> {
  const { workspaceId } = call
  const worker = workerName(call)
  const reported = new Set(call.holding)
  // Add them before the read: a settle that commits meanwhile removes its lease again.
  for (const lease of reported) held.add(lease)
  let stored: ReadonlySet<string> = new Set()
  try {
    const leases = await store.read(() => findLeasesOf(worker))
    stored = new Set(leases.map(leaseId))
    for (const key of leases) {
      if (reported.has(leaseId(key))) continue
      held.delete(leaseId(key))
      await store.write(() => freeLease(key, worker), workspaceId)
      changed(workspaceId, key.taskId)
    }
  } finally {
    for (const lease of reported) if (!stored.has(lease)) held.delete(lease)
  }
  return new Set([...reported].filter((lease) => held.has(lease) && !waitingLeases.has(lease)))
}
