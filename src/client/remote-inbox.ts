/**
 * The inbox of a bridge: the runtime of `molecule connect` uses it in place of the local inbox, over HTTP. Work comes
 * by a long poll, so that a message arrives as soon as it is admitted. Each poll names the leases held here, so that
 * the platform finds a lease whose answer was lost.
 * Invariant: the runtime gets a lease only after the platform has stored that its turn begins, so that a lease that is
 * lost before does not count as a lost turn.
 */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import {
  type Ask,
  type Directive,
  type Inbox,
  type Lease,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type NumberedEvents,
  type Outcome,
  type Worker,
} from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import type { Brief } from '../protocol/brief.ts'
import { restoreEnvelope } from '../protocol/envelope.ts'
import { createWaitQueue, type WaitQueue } from '../wait.ts'
import { type PlatformConnection, retryUntilAnswered } from './platform-connection.ts'

/** How long the platform may hold a poll for work. */
const WAIT_MS = 20_000
/** An answer that is this late will not come: the connection is dead. */
const LATE_ANSWER_MS = 5_000
const CALL_MS = 10_000
const SETTLE_MS = 30_000
/** How long an append waits during a backoff; then it fails, and its events go with the next append. */
const APPEND_PATIENCE_MS = 2_000

export interface RemoteInboxOptions {
  readonly connection: PlatformConnection
  readonly workspaceId: string
  /** The machine of the bridge, which keeps the sessions. */
  readonly host: string
  /** The name of the backend that runs the turns here. */
  readonly backend: string
  /** How many turns may run here at the same time. */
  readonly concurrency: number
  /** Fewer, while the handler here does not work; undefined = `concurrency`. */
  readonly capacity?: () => number | undefined
  /** The status text when a turn begins: `started on laptop`. */
  readonly startedText: string
  readonly log: Log
}

type InboxAnswer<Name extends 'append' | 'begin' | 'lease' | 'settle'> =
  ApiAnswer<`POST /workspaces/{id}/inbox/${Name}`>

/** A brief as the platform sends it. The bridge sets the backend, its options and the folder. */
export type RemoteBrief = Omit<Brief, 'runtime' | 'options' | 'workingDir'>

export interface RemoteInbox extends Inbox {
  /** The brief of a lease that is held here. */
  brief(lease: LeaseKey): RemoteBrief
  /** `capacity` has changed: the open poll is replaced. */
  capacityChanged(): void
  /** Tells the platform, after the last turn, that this bridge holds no lease any more. */
  leave(worker: Worker): Promise<void>
}

interface RemoteInboxState extends RemoteInboxOptions {
  readonly holding: Map<string, RemoteBrief>
  readonly suspended: Set<string>
  readonly at: string
  /** Ends the open poll; the next one follows at once. */
  repoll: AbortController
}

export function createRemoteInbox(options: RemoteInboxOptions): RemoteInbox {
  const { connection } = options
  const at = `/workspaces/${encodeURIComponent(options.workspaceId)}/inbox`
  const state: RemoteInboxState = {
    ...options,
    at,
    holding: new Map(),
    suspended: new Set(),
    repoll: new AbortController(),
  }
  const forget = (key: LeaseKey) => {
    state.holding.delete(leaseId(key))
    state.suspended.delete(leaseId(key))
  }
  const dropIfStale = <S extends string>(key: LeaseKey, standing: S): S => {
    if (standing === 'stale') forget(key)
    return standing
  }
  const postForStanding = async <S extends string>(name: string, key: LeaseKey, more: object = {}): Promise<S> => {
    const body = { key: toWireKey(key), ...more }
    const { standing } = await connection.post<{ standing: S }>(`${at}/${name}`, { body, timeoutMs: CALL_MS })
    return dropIfStale(key, standing)
  }
  return {
    leases: (worker, signal) => takeWork(state, worker, signal),
    begin: (key, text) => postBegin(state, key, text).then((standing) => dropIfStale(key, standing)),
    async extend(keys) {
      const call = { body: { keys: keys.map(toWireKey) }, timeoutMs: CALL_MS, maxWaitMs: 0 }
      type Renewed = { standings: LeaseStanding[]; waiting?: boolean[] }
      const { standings, waiting } = await connection.post<Renewed>(`${at}/extend`, call)
      return keys.map((key, index) => {
        const standing = dropIfStale(key, standings[index] ?? 'stale')
        return standing === 'held' && waiting?.[index] === true ? 'waiting' : standing
      })
    },
    append: (key, events) => postEvents(state, key, events).then((standing) => dropIfStale(key, standing)),
    async settle(key, outcome, unsent) {
      const answer = await postSettle(state, key, { outcome, unsent })
      forget(key)
      return answer
    },
    async suspend(key) {
      const standing = await postForStanding<LeaseStanding | 'refused'>('suspend', key)
      if (standing === 'held') state.suspended.add(leaseId(key))
      return standing
    },
    async resume(key) {
      state.suspended.delete(leaseId(key))
      return await postForStanding<LeaseStanding>('resume', key)
    },
    async ask(key, ask) {
      const standing = await postForStanding<LeaseStanding | 'refused'>('ask', key, { question: toWireAsk(ask) })
      if (standing === 'held') state.suspended.add(leaseId(key))
      return standing
    },
    brief(key) {
      const brief = state.holding.get(leaseId(key))
      if (brief === undefined) throw new MoleculeError('internal', `the message ${key.messageId} has no brief`)
      return brief
    },
    capacityChanged() {
      state.repoll.abort()
      state.repoll = new AbortController()
    },
    async leave(worker) {
      const body = leaseRequest(state, worker, { leasesMax: 0, waitMs: 0 })
      await connection.post(`${at}/lease`, { body, timeoutMs: LATE_ANSWER_MS })
    },
  }
}

/** The key on the wire, where the URL names the workspace. */
const toWireKey = ({ conversationId, taskId, messageId, epoch }: LeaseKey) => ({
  conversationId,
  taskId,
  messageId,
  epoch,
})

/** On the wire, a question is an ask without `permission`. */
function toWireAsk(ask: Ask) {
  const { id, parts, timeoutMs } = ask
  const permission = ask.kind === 'permission' ? { tool: ask.tool, subject: ask.subject } : undefined
  return { id, parts, permission, timeoutMs }
}

async function postBegin({ connection, at }: RemoteInboxState, key: LeaseKey, text?: string): Promise<LeaseStanding> {
  const call = { body: { key: toWireKey(key), text }, timeoutMs: CALL_MS, maxWaitMs: APPEND_PATIENCE_MS }
  return (await connection.post<InboxAnswer<'begin'>>(`${at}/begin`, call)).standing
}

async function postEvents(
  { connection, at }: RemoteInboxState,
  key: LeaseKey,
  events: NumberedEvents,
): Promise<LeaseStanding> {
  const call = { body: { key: toWireKey(key), ...events }, timeoutMs: CALL_MS, maxWaitMs: APPEND_PATIENCE_MS }
  return (await connection.post<InboxAnswer<'append'>>(`${at}/append`, call)).standing
}

async function postSettle(
  { connection, at, host }: RemoteInboxState,
  key: LeaseKey,
  settling: { readonly outcome: Outcome; readonly unsent?: NumberedEvents },
): Promise<'settled' | 'stale'> {
  const body = { key: toWireKey(key), host, ...settling }
  return (await connection.post<InboxAnswer<'settle'>>(`${at}/settle`, { body, timeoutMs: SETTLE_MS })).answer
}

function leaseRequest(
  { host, backend, holding }: RemoteInboxState,
  worker: Worker,
  { leasesMax, waitMs }: { leasesMax: number; waitMs: number },
) {
  return { bridge: worker.id, host, backend, leases_max: leasesMax, holding: [...holding.keys()], wait_ms: waitMs }
}

async function* takeWork(state: RemoteInboxState, worker: Worker, signal: AbortSignal): AsyncGenerator<Directive> {
  const queue = createWaitQueue<Directive>()
  const polling = pollForWork(state, { worker, queue }, signal)
  try {
    for (let directive = await queue.take(signal); directive; directive = await queue.take(signal)) yield directive
  } finally {
    await polling
    for (const directive of queue.clear()) if (directive.type === 'lease') await release(state, directive.lease)
  }
}

/** Polls until the signal aborts, also at full capacity, because stop and answer directives come the same way. */
async function pollForWork(
  state: RemoteInboxState,
  { worker, queue }: { worker: Worker; queue: WaitQueue<Directive> },
  signal: AbortSignal,
): Promise<void> {
  const { connection, at, holding, suspended, concurrency, capacity } = state
  const beginning = new Set<Promise<void>>()
  while (!signal.aborted) {
    const repoll = state.repoll.signal
    try {
      const leasesMax = Math.min(capacity?.() ?? concurrency, concurrency)
      const body = leaseRequest(state, worker, { leasesMax: leasesMax + suspended.size, waitMs: WAIT_MS })
      const call = { body, timeoutMs: WAIT_MS + LATE_ANSWER_MS }
      const ended = AbortSignal.any([signal, repoll])
      const { handouts } = await connection.post<InboxAnswer<'lease'>>(`${at}/lease`, call, ended)
      for (const directive of handouts) {
        // A denial comes without its member `parts`.
        if (directive.type === 'answer') queue.put({ ...directive, parts: directive.parts })
        else if (directive.type !== 'lease') queue.put(directive)
        else {
          const lease: Lease = { ...directive.lease, envelope: restoreEnvelope(directive.lease.envelope) }
          holding.set(leaseId(lease), directive.brief)
          // It came while the handler broke: it keeps its place.
          const begin = capacity?.() === 0 ? release(state, lease) : beginTurn(state, { lease, queue }, signal)
          const begun = begin.finally(() => beginning.delete(begun))
          beginning.add(begun)
        }
      }
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      if (!signal.aborted && !repoll.aborted && !error.retryable) connection.backoff(error)
    }
  }
  await Promise.all(beginning)
}

/** Puts the lease into the queue only after the platform has stored that the turn begins. */
async function beginTurn(
  state: RemoteInboxState,
  { lease, queue }: { lease: Lease; queue: WaitQueue<Directive> },
  signal: AbortSignal,
): Promise<void> {
  try {
    const standing = await retryUntilAnswered(() => postBegin(state, lease, state.startedText), signal)
    if (standing === 'held') return queue.put({ type: 'lease', lease })
    if (standing === 'stop') await postSettle(state, lease, { outcome: { type: 'stopped' } })
    state.holding.delete(leaseId(lease))
  } catch (thrown) {
    state.log.warn(
      { err: toMoleculeError(thrown), messageId: lease.messageId },
      'a turn could not begin; its lease is released',
    )
    await release(state, lease)
  }
}

/** Releases a lease without a lost attempt. If the call fails, the next poll does it by not naming the lease. */
async function release(state: RemoteInboxState, lease: Lease): Promise<void> {
  state.holding.delete(leaseId(lease))
  const outcome: Outcome = { type: 'released', interrupted: false }
  await postSettle(state, lease, { outcome }).catch((error: unknown) =>
    state.log.warn({ err: toMoleculeError(error), messageId: lease.messageId }, 'a lease could not be released'),
  )
}
