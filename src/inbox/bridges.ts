/**
 * Workers elsewhere: a bridge asks for work by one call after the other, each of which waits until there is some. While
 * a call waits, the bridge has a desk here like any worker, so that admission leases to it at once. Between two calls
 * it has none, and the store alone knows what it holds. Invariant: what is stored as leased to a bridge that says it
 * does not hold it goes back at once; the answer that would have told it was lost, or the bridge has been restarted.
 */
import { type Clock, sleep } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { sql, statement, type Transaction, together } from '../store/store.ts'
import type { Desk } from './desks.ts'
import type { Handout, Inbox, LeaseKey, NumberedEvents, Outcome } from './inbox.ts'
import { lockWorkspace } from './lock.ts'
import { BRIDGE_PREFIX, countLoss, LOST_COLUMNS, type LostMessage } from './loss.ts'
import { leaseName, type Office } from './office.ts'
import type { KeepSession } from './outcome.ts'
import { freeLost } from './recover.ts'
import { findLeasesOf } from './unheard.ts'
import type { Fill, WorkerFace } from './worker-face.ts'

/** Bridges of one workspace that may wait for work at a time. */
export const BRIDGES_MAX = 64

export interface BridgeCall {
  readonly workspaceId: string
  /** The bridge's own name for itself; the same after its restart. */
  readonly bridge: string
  /** How many leases it can hold at a time. */
  readonly leasesMax: number
  /** Those that it holds, as `<message>.<epoch>`. */
  readonly holding: readonly string[]
  readonly waitMs: number
}

/** Where a session token of a bridge is good: on its machine. */
export type KeepSessionOn = (host: string) => KeepSession

/**
 * Contract: `lease` answers as soon as there is something, or with nothing after `waitMs`; a second call of the same
 * bridge ends the first. What was claimed for a call whose caller has gone is released. The others are those of the
 * inbox; a key of another workspace is stale.
 */
export interface Bridges extends Omit<Inbox, 'leases' | 'settle'> {
  lease(call: BridgeCall, signal: AbortSignal): Promise<Handout[]>
  settle(key: LeaseKey, settling: BridgeSettling): ReturnType<Inbox['settle']>
}

export interface BridgeSettling {
  readonly outcome: Outcome
  readonly unsent?: NumberedEvents
  /** Where the session lives that the outcome speaks of. */
  readonly host: string
}

export interface BridgesOptions {
  readonly office: Office
  readonly face: WorkerFace
  readonly fill: Fill
  readonly keepSessionOn: KeepSessionOn
}

interface Waiting {
  readonly workspaceId: string
  readonly superseded: AbortController
  readonly ended: Promise<void>
}

export function createBridges({ office, face, fill, keepSessionOn }: BridgesOptions): Bridges {
  const { store } = office
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
      requirePlace(waiting, call.workspaceId)
      const superseded = new AbortController()
      const ended = Promise.withResolvers<void>()
      waiting.set(worker, { workspaceId: call.workspaceId, superseded, ended: ended.promise })
      try {
        return await takeWork({ office, face, fill }, call, AbortSignal.any([signal, superseded.signal]))
      } finally {
        waiting.delete(worker)
        ended.resolve()
      }
    },
    extend: (keys) => Promise.all(keys.map((key) => own(key, async () => (await face.extend([key]))[0] ?? 'stale'))),
    append: (key, events) => own(key, () => face.append(key, events)),
    settle: (key, { outcome, unsent, host }) =>
      own(key, () => face.settleFor(key, { outcome, unsent, keepSession: keepSessionOn(host) })),
    suspend: (key) => own(key, () => face.suspend(key)),
    resume: (key) => own(key, () => face.resume(key)),
    ask: (key, question) => own(key, () => face.ask(key, question)),
  }
}

/** Unlike any worker of a platform, and of its workspace alone, whatever it calls itself. */
const workerName = ({ workspaceId, bridge }: BridgeCall): string => `${BRIDGE_PREFIX}${workspaceId}.${bridge}`

function requirePlace(waiting: ReadonlyMap<string, Waiting>, workspaceId: string): void {
  const here = waiting.values().filter((one) => one.workspaceId === workspaceId)
  if ([...here].length < BRIDGES_MAX) return
  const message = `${BRIDGES_MAX} bridges wait for work of this workspace already`
  throw new MoleculeError('too_many_requests', message, { retryable: true, details: { retryAfterMs: 10_000 } })
}

type Parts = Pick<BridgesOptions, 'office' | 'face' | 'fill'>

async function takeWork({ office, face, fill }: Parts, call: BridgeCall, signal: AbortSignal): Promise<Handout[]> {
  const { desks, clock } = office
  const worker = { id: workerName(call), workspaces: [call.workspaceId] }
  const holding = await reconcile(office, call)
  if (signal.aborted) return []
  const desk = desks.open(worker, { leasesMax: call.leasesMax, holding })
  let handouts: Handout[] = []
  try {
    await fill(desk)
    handouts = await firstOf(desk, { clock, waitMs: call.waitMs }, signal)
  } finally {
    desks.close(desk)
    // Nobody will hear of what came for a caller that has gone.
    const unheard = signal.aborted ? [...handouts, ...desk.clear()] : desk.clear()
    for (const handout of unheard) if (handout.type === 'lease') face.giveBack(handout.lease)
  }
  return signal.aborted ? [] : handouts
}

/** Everything that is there when the first thing is. */
async function firstOf(
  desk: Desk,
  { clock, waitMs }: { clock: Clock; waitMs: number },
  signal: AbortSignal,
): Promise<Handout[]> {
  const enough = new AbortController()
  const over = AbortSignal.any([signal, enough.signal])
  void sleep(clock, waitMs, over).then(() => enough.abort())
  const first = await desk.take(over)
  enough.abort()
  return first === undefined ? desk.clear() : [first, ...desk.clear()]
}

/** Sets free what the bridge was leased and does not hold; gives the names of what it does hold. */
async function reconcile({ store, held, changed }: Office, call: BridgeCall): Promise<Set<string>> {
  const { workspaceId } = call
  const worker = workerName(call)
  const said = new Set(call.holding)
  // Before the store is asked: what is settled from now on takes its name away again.
  for (const name of said) held.add(name)
  let stored: ReadonlySet<string> = new Set()
  try {
    const leases = await store.read(() => findLeasesOf(worker))
    stored = new Set(leases.map(leaseName))
    for (const key of leases) {
      if (said.has(leaseName(key))) continue
      held.delete(leaseName(key))
      await store.write(() => setFree(key, worker), workspaceId)
      changed(workspaceId, key.taskId)
    }
  } finally {
    for (const name of said) if (!stored.has(name)) held.delete(name)
  }
  return new Set([...said].filter((name) => held.has(name)))
}

function* setFree(key: LeaseKey, worker: string): Transaction<void> {
  const [, [message]] = (yield* together([
    lockWorkspace(key.workspaceId),
    statement(
      `select ${LOST_COLUMNS} from messages where id = $1 and state in ('leased', 'stopping') and exists
         (select 1 from conversations c where c.id = conversation_id and c.worker = $2 and c.lease_epoch = $3)`,
      [key.messageId, worker, key.epoch],
    ),
  ])) as unknown as [unknown, LostMessage[]]
  if (message !== undefined) yield* freeLost(message, yield* countLoss(message))
}

/** A bridge's token is for one workspace: a key that names another's message must lead nowhere. */
function* belongs({ messageId, taskId, conversationId, workspaceId }: LeaseKey): Transaction<boolean> {
  const rows = yield* sql(
    'select id from messages where id = $1 and task_id = $2 and conversation_id = $3 and workspace_id = $4',
    [messageId, taskId, conversationId, workspaceId],
  )
  return rows.length > 0
}
