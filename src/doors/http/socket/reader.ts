/**
 * One client of `WS /ws`. The next page of a log is read from the store only after the socket has sent the page before.
 * Changes in between only mark a log as stale; they are not queued. So a slow client costs one page of memory. A client
 * that reads nothing for too long is disconnected, and resumes with the numbers it has seen.
 */

import type { WebSocket } from 'ws'
import { rolesOf } from '../../../api/who-may.ts'
import { PLATFORM_STREAM } from '../../../client/live-socket.ts'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { workspaceFor } from '../../../views/workspaces.ts'
import { createWakeUp } from '../../../wait.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import { letOthersRun } from '../server/body.ts'
import { errorAnswer } from '../server/errors.ts'
import { reachable, requireOwnWorkspace } from '../server/reach.ts'
import type { SseLimits } from '../server/sse.ts'
import { validateBody } from '../server/validate-body.ts'
import {
  changedMessage,
  deletedMessage,
  endedMessage,
  errorMessage,
  eventsMessage,
  needsYouMessage,
  type Subscription,
  snapshotMessage,
  subscribedMessage,
  subscriptionSchema,
} from './messages.ts'
import type { PlatformWatch } from './platform-watch.ts'

/** Unread messages of a client. A client that sends more of them is disconnected. */
const UNREAD_MESSAGES_MAX = 16
/** After this many names of a subscription other callers run: each name costs a query. */
const NAMES_AT_ONCE = 20
/** WebSocket close codes. */
const POLICY_VIOLATION = 1008
const INTERNAL_ERROR = 1011

export interface SocketReaderOptions {
  readonly identity: Identity
  readonly requestId: string
  readonly logs: WorkspaceLogs
  readonly platform: PlatformWatch
  readonly clock: Clock
  readonly limits: SseLimits
  readonly log: Log
  /** Limits what the messages of one token may ask for, over all its sockets. A client past a limit is disconnected. */
  readonly subscriptionLimits: SubscriptionLimits
}

/** Both throw `too_many_requests`. */
export interface SubscriptionLimits {
  /** Counts the names of a message, before any of them is looked up. */
  countNames(tokenId: string, names: number): void
  countRefused(tokenId: string): void
}

export interface SocketReader {
  /** The log of this workspace may have grown. */
  hint(workspaceId: string): void
  /** The last number of each log. Logs whose cursor is behind are read. */
  compare(heads: ReadonlyMap<string, number>): void
}

export function createSocketReader(socket: WebSocket, options: SocketReaderOptions): SocketReader {
  const state = new SocketReaderState(socket, options)
  socket.on('message', (data, isBinary) => {
    if (state.unread.length >= UNREAD_MESSAGES_MAX) return socket.close(POLICY_VIOLATION, 'too many unread messages')
    state.unread.push(isBinary ? '' : String(data))
    state.wakeUp.wake()
  })
  socket.once('close', () => state.end())
  run(state).catch((error: unknown) => {
    // The store is unavailable: the client reconnects with the numbers it has seen.
    options.log.warn({ err: toMoleculeError(error), requestId: options.requestId }, 'a socket was closed by an error')
    socket.close(INTERNAL_ERROR, 'try again')
  })
  return {
    hint(workspaceId) {
      if (!state.cursors.has(workspaceId)) return
      state.stale.add(workspaceId)
      state.wakeUp.wake()
    },
    compare(heads) {
      for (const [id, seq] of state.cursors) if (heads.get(id) !== seq) state.stale.add(id)
      state.wakeUp.wake()
    },
  }
}

class SocketReaderState {
  readonly socket: WebSocket
  readonly options: SocketReaderOptions
  /** Messages of the client that are not read yet. */
  readonly unread: string[] = []
  /** For each followed log, the number of the last row that was sent. */
  readonly cursors = new Map<string, number>()
  /** Logs that may have grown. */
  readonly stale = new Set<string>()
  /** Whether to follow also workspaces that the client did not name, and new ones. */
  others = false
  /** The fingerprint that was sent of each workspace; undefined when `_platform` is not followed. */
  sent: Map<string, string> | undefined
  platformStale = false
  /** The mark of what needs a person, as it was sent. */
  sentNeeds: string | undefined
  readonly wakeUp = createWakeUp()
  private stopWatching: (() => void) | undefined

  constructor(socket: WebSocket, options: SocketReaderOptions) {
    this.socket = socket
    this.options = options
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  watchPlatform(): void {
    // Prevents a leak: for a socket that has closed meanwhile, nothing would ever stop the watch.
    if (!this.isOpen) return
    this.stopWatching ??= this.options.platform.watch(() => {
      this.platformStale = true
      this.wakeUp.wake()
    })
  }

  end(): void {
    this.stopWatching?.()
    this.wakeUp.wake()
  }

  /** Resolves when the socket has sent all messages, or is closed. */
  send(messages: readonly string[]): Promise<void> {
    const { socket, options } = this
    if (messages.length === 0 || !this.isOpen) return Promise.resolve()
    return new Promise((resolve) => {
      const cancelTimeout = options.clock.after(options.limits.unsentMs, () => socket.terminate())
      const done = () => {
        cancelTimeout()
        socket.off('close', done)
        resolve()
      }
      socket.once('close', done)
      messages.forEach((text, index) => {
        if (index < messages.length - 1) socket.send(text)
        else socket.send(text, done)
      })
    })
  }
}

async function run(state: SocketReaderState): Promise<void> {
  while (state.isOpen) {
    if (await takeNextMessage(state)) continue
    if (await sendPlatformChanges(state)) continue
    if (await sendNextLogPage(state)) continue
    await state.wakeUp.wait()
  }
}

async function takeNextMessage(state: SocketReaderState): Promise<boolean> {
  const text = state.unread.shift()
  if (text === undefined) return false
  const refusals = createRefusals(state)
  try {
    await subscribe(state, readSubscription(text), refusals)
  } catch (thrown) {
    await refusals.add(thrown)
  }
  refusals.writeLog()
  return true
}

function readSubscription(text: string): Subscription {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'a message must be JSON text', { cause })
  }
  return validateBody(subscriptionSchema, body, 'a subscription')
}

async function subscribe(
  state: SocketReaderState,
  { subscribe: named, others, unsubscribe = [] }: Subscription,
  refusals: Refusals,
): Promise<void> {
  const { subscriptionLimits, identity } = state.options
  const entries = Object.entries(named)
  subscriptionLimits.countNames(identity.tokenId, entries.length + unsubscribe.length + 1)
  for (const name of unsubscribe) endLog(state, name)
  for (const [index, [name, seq]] of entries.entries()) {
    if (!state.isOpen) return
    if (index % NAMES_AT_ONCE === NAMES_AT_ONCE - 1) await letOthersRun()
    try {
      if (name === PLATFORM_STREAM) await followPlatform(state)
      else await followLog(state, name, seq ?? undefined)
    } catch (thrown) {
      await refusals.add(thrown, name)
    }
  }
  if (others === undefined) return
  // Set before the list is read, so that a workspace created in between counts as new and is not missed.
  state.others = true
  await followPlatform(state)
  const heads = others === 'now' ? await state.options.logs.heads() : undefined
  for (const { workspace } of await visibleWorkspaces(state)) {
    if (Object.hasOwn(named, workspace.id) || state.cursors.has(workspace.id) || !mayFollow(state, workspace.id))
      continue
    await beginLog(state, workspace.id, heads?.get(workspace.id) ?? 0)
  }
}

async function followLog(state: SocketReaderState, workspaceId: string, seq: number | undefined): Promise<void> {
  const { logs, identity } = state.options
  requireOwnWorkspace(identity, workspaceId)
  await beginLog(state, workspaceId, await logs.resolveCursor(workspaceId, seq))
}

async function beginLog(state: SocketReaderState, workspaceId: string, seq: number): Promise<void> {
  state.cursors.set(workspaceId, seq)
  state.stale.add(workspaceId)
  await state.send([subscribedMessage(workspaceId, seq)])
}

function endLog({ cursors, stale }: SocketReaderState, workspaceId: string): void {
  cursors.delete(workspaceId)
  stale.delete(workspaceId)
}

async function followPlatform(state: SocketReaderState): Promise<void> {
  state.watchPlatform()
  const all = await visibleWorkspaces(state)
  state.sent = new Map(all.map(({ workspace, fingerprint }) => [workspace.id, fingerprint]))
  const snapshot = snapshotMessage(
    all.map(({ workspace, card }) => workspaceFor(state.options.identity, workspace, card)),
  )
  state.sentNeeds = undefined
  await state.send([snapshot, ...(await changedNeeds(state))])
}

/** For the people who may answer: how much needs them, when that has changed. */
async function changedNeeds(state: SocketReaderState): Promise<string[]> {
  if (!rolesOf('pending.read').includes(state.options.identity.role)) return []
  const { count, mark } = await state.options.platform.needsYou()
  if (mark === state.sentNeeds) return []
  state.sentNeeds = mark
  return [needsYouMessage(count)]
}

/** The workspaces that the token reaches. */
async function visibleWorkspaces({ options }: SocketReaderState) {
  const all = await options.platform.workspaces()
  const reached = new Set(
    reachable(
      options.identity,
      all.map(({ workspace }) => workspace),
    ),
  )
  return all.filter(({ workspace }) => reached.has(workspace))
}

function mayFollow({ options: { identity } }: SocketReaderState, workspaceId: string): boolean {
  return identity.role !== 'workspace' || identity.workspaceId === workspaceId
}

async function sendPlatformChanges(state: SocketReaderState): Promise<boolean> {
  const { sent } = state
  if (!state.platformStale || sent === undefined) return false
  state.platformStale = false
  const all = await visibleWorkspaces(state)
  const messages: string[] = []
  const created: string[] = []
  const deleted = new Set(sent.keys())
  for (const { workspace, card, fingerprint } of all) {
    const { id } = workspace
    deleted.delete(id)
    const known = sent.get(id)
    if (known === fingerprint) continue
    sent.set(id, fingerprint)
    messages.push(
      changedMessage(
        known === undefined ? 'created' : 'changed',
        id,
        workspaceFor(state.options.identity, workspace, card),
      ),
    )
    if (known === undefined && state.others && !state.cursors.has(id) && mayFollow(state, id)) created.push(id)
  }
  for (const id of deleted) {
    sent.delete(id)
    messages.push(deletedMessage(id))
  }
  await state.send([...messages, ...(await changedNeeds(state))])
  for (const id of created) await beginLog(state, id, 0)
  return true
}

/** Sends one page of the log that has been stale for the longest time. */
async function sendNextLogPage(state: SocketReaderState): Promise<boolean> {
  const [workspaceId] = state.stale
  if (workspaceId === undefined) return false
  state.stale.delete(workspaceId)
  const cursor = state.cursors.get(workspaceId)
  if (cursor === undefined) return true
  const rows = await state.options.logs.page(workspaceId, cursor)
  const last = rows?.at(-1)
  if (rows === undefined) {
    state.cursors.delete(workspaceId)
    await state.send([endedMessage(workspaceId)])
  } else if (last !== undefined) {
    state.cursors.set(workspaceId, last.seq)
    // There may be more than one page.
    state.stale.add(workspaceId)
    await state.send(rows.map((row) => eventsMessage(workspaceId, row)))
  }
  return true
}

interface Refusals {
  /** Tells the client; disconnects one that asks for too much. */
  add(thrown: unknown, workspaceId?: string): Promise<void>
  /** One line for all refusals of a message: a client chooses how many there are. */
  writeLog(): void
}

function createRefusals(state: SocketReaderState): Refusals {
  const { requestId, log, identity, subscriptionLimits } = state.options
  let first: { readonly code: string; readonly reason: string; readonly workspaceId: string | undefined } | undefined
  let count = 0
  return {
    async add(thrown, workspaceId) {
      const error = toMoleculeError(thrown)
      first ??= { code: error.code, reason: error.message, workspaceId }
      count++
      await sendRefusal(state, error, workspaceId)
      if (error.code === 'too_many_requests') return state.socket.close(POLICY_VIOLATION, error.message)
      // A client that slept for long asks for many rows that were pruned meanwhile.
      if (error.code === 'pruned') return
      try {
        subscriptionLimits.countRefused(identity.tokenId)
      } catch (limit) {
        state.socket.close(POLICY_VIOLATION, (limit as MoleculeError).message)
      }
    },
    writeLog() {
      if (first !== undefined) log.info({ requestId, ...first, count }, 'a subscription was refused')
    },
  }
}

async function sendRefusal(state: SocketReaderState, error: MoleculeError, workspaceId?: string): Promise<void> {
  const { requestId } = state.options
  const { status, body } = errorAnswer(error, requestId)
  const prunedSeq = error.details['prunedSeq']
  const pruned = typeof prunedSeq === 'number' ? { pruned_seq: prunedSeq } : {}
  await state.send([errorMessage(status, { ...(body as object), ...pruned }, workspaceId)])
}
