/**
 * Workers elsewhere: a bridge asks for work by one call after the other, each of which waits until there is some. While
 * a call waits, the bridge has a queue here like any worker, so that admission leases to it at once. Between two calls
 * it has none, and the store alone knows what it holds. Invariant: what is stored as leased to a bridge that says it
 * does not hold it goes back at once; the answer that would have told it was lost, or the bridge has been restarted.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { sleep } from '../../wait.ts'
import type { InboxContext, KeepSessionOn } from '../context.ts'
import { type BridgeCall, type Bridges, type Directive, type LeaseKey, leaseId } from '../inbox.ts'
import { lockWorkspace } from './lock-workspace.ts'
import { findLeasesOf } from './lost-leases.ts'
import { LOST_COLUMNS, type LostMessage, recordLoss } from './lost-turn.ts'
import { freeLost } from './recover.ts'
import type { FillQueue, WorkerInbox } from './worker-inbox.ts'
import type { WorkerQueue } from './worker-queues.ts'

/** Bridges of one workspace that may wait for work at a time. */
export const BRIDGES_MAX = 64

export interface BridgesOptions {
  readonly context: InboxContext
  readonly workerInbox: WorkerInbox
  readonly fill: FillQueue
  readonly keepSessionOn: KeepSessionOn
}

interface Waiting {
  readonly workspaceId: string
  readonly superseded: AbortController
  readonly ended: Promise<void>
}

export function createBridges({ context, workerInbox, fill, keepSessionOn }: BridgesOptions): Bridges {
  const { store } = context
  const waiting = new Map<string, Waiting>()
  const own = async <T>(key: LeaseKey, work: () => Promise<T>): Promise<T | 'stale'> =>
    (await store.read(() => belongs(key))) ? work() : 'stale'
  return {
    async lease(call, signal) {
      const worker = workerName(call)
      for (let before = waiting.get(worker); before !== undefined; before = waiting.get(worker)) {
        before.superseded.abort()
        await before.ended
      }
      requireCapacity(waiting, call.workspaceId)
      const superseded = new AbortController()
      const ended = Promise.withResolvers<void>()
      waiting.set(worker, { workspaceId: call.workspaceId, superseded, ended: ended.promise })
      try {
        return await takeWork({ context, workerInbox, fill }, call, AbortSignal.any([signal, superseded.signal]))
      } finally {
        waiting.delete(worker)
        ended.resolve()
      }
    },
    begin: (key, text) => own(key, () => workerInbox.begin(key, text)),
    extend: (keys) =>
      Promise.all(keys.map((key) => own(key, async () => (await workerInbox.extend([key]))[0] ?? 'stale'))),
    append: (key, events) => own(key, () => workerInbox.append(key, events)),
    settle: (key, { outcome, unsent, host }) =>
      own(key, () => workerInbox.settleFor(key, { outcome, unsent, keepSession: keepSessionOn(host) })),
    suspend: (key) => own(key, () => workerInbox.suspend(key)),
    resume: (key) => own(key, () => workerInbox.resume(key)),
    ask: (key, question) => own(key, () => workerInbox.ask(key, question)),
  }
}

/** Unlike any worker of a platform, and of its workspace alone, whatever it calls itself. */
const workerName = ({ workspaceId, bridge }: BridgeCall): string => `bridge.${workspaceId}.${bridge}`

function requireCapacity(waiting: ReadonlyMap<string, Waiting>, workspaceId: string): void {
  const here = waiting.values().filter((one) => one.workspaceId === workspaceId)
  if ([...here].length < BRIDGES_MAX) return
  const message = `${BRIDGES_MAX} bridges wait for work of this workspace already`
  throw new MoleculeError('too_many_requests', message, { retryable: true, details: { retryAfterMs: 10_000 } })
}

type Parts = Pick<BridgesOptions, 'context' | 'workerInbox' | 'fill'>

async function takeWork(
  { context, workerInbox, fill }: Parts,
  call: BridgeCall,
  signal: AbortSignal,
): Promise<Directive[]> {
  const { workerQueues, clock } = context
  const worker = { id: workerName(call), workspaces: [call.workspaceId] }
  const holding = await reconcile(context, call)
  if (signal.aborted) return []
  const queue = workerQueues.open(worker, { leasesMax: call.leasesMax, holding })
  let directives: Directive[] = []
  try {
    await fill(queue)
    directives = await takeAvailable(queue, { clock, waitMs: call.waitMs }, signal)
  } finally {
    workerQueues.close(queue)
    // Nobody will hear of what came for a caller that has gone.
    const undelivered = signal.aborted ? [...directives, ...queue.clear()] : queue.clear()
    for (const directive of undelivered) if (directive.type === 'lease') workerInbox.releaseLease(directive.lease)
  }
  return signal.aborted ? [] : directives
}

/** Everything that is there when the first thing is. */
async function takeAvailable(
  queue: WorkerQueue,
  { clock, waitMs }: { clock: Clock; waitMs: number },
  signal: AbortSignal,
): Promise<Directive[]> {
  const enough = new AbortController()
  const over = AbortSignal.any([signal, enough.signal])
  void sleep(clock, waitMs, over).then(() => enough.abort())
  const first = await queue.take(over)
  enough.abort()
  return first === undefined ? queue.clear() : [first, ...queue.clear()]
}

/** Sets free what the bridge was leased and does not hold; gives the names of what it does hold. */
async function reconcile({ store, held, changed }: InboxContext, call: BridgeCall): Promise<Set<string>> {
  const { workspaceId } = call
  const worker = workerName(call)
  const reported = new Set(call.holding)
  // Before the store is asked: what is settled from now on takes its name away again.
  for (const name of reported) held.add(name)
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
    for (const name of reported) if (!stored.has(name)) held.delete(name)
  }
  return new Set([...reported].filter((name) => held.has(name)))
}

function* freeLease(key: LeaseKey, worker: string): Transaction<void> {
  const [, [message]] = (yield* together([
    lockWorkspace(key.workspaceId),
    statement(
      `select ${LOST_COLUMNS} from messages where id = $1 and state in ('leased', 'stopping') and exists
         (select 1 from conversations c where c.id = conversation_id and c.worker = $2 and c.lease_epoch = $3)`,
      [key.messageId, worker, key.epoch],
    ),
  ])) as unknown as [unknown, LostMessage[]]
  if (message !== undefined) yield* freeLost(message, yield* recordLoss(message))
}

/** A bridge's token is for one workspace: a key that names another's message must lead nowhere. */
function* belongs({ messageId, taskId, conversationId, workspaceId }: LeaseKey): Transaction<boolean> {
  const rows = yield* sql(
    'select id from messages where id = $1 and task_id = $2 and conversation_id = $3 and workspace_id = $4',
    [messageId, taskId, conversationId, workspaceId],
  )
  return rows.length > 0
}
