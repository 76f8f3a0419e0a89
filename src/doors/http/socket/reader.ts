/**
 * One client of `WS /ws`. It is written to only as fast as it reads: the next page of a log is read from the store when
 * the socket has sent the one before, and what happened meanwhile is kept as "look there", never as a queue. So a slow
 * client costs one page of memory. One that takes nothing for too long is cut off and resumes by its numbers.
 */
import type { WebSocket } from 'ws'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Activity } from '../../../inbox/readers.ts'
import type { Log } from '../../../log.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { viewWorkspaceFor } from '../routes/workspace-schema.ts'
import { errorAnswer } from '../server/errors.ts'
import { reachable, requireOwnWorkspace } from '../server/reach.ts'
import type { SseLimits } from '../server/sse.ts'
import { validateBody } from '../server/validate-body.ts'
import * as words from './messages.ts'
import type { PlatformWatch } from './platform-watch.ts'

/** Messages of a client that wait to be read; who sends more than it listens to is cut off. */
const UNREAD_MESSAGES_MAX = 16
const POLICY_VIOLATION = 1008

export interface SocketReaderOptions {
  readonly identity: Identity
  readonly requestId: string
  readonly activity: Activity
  readonly platform: PlatformWatch
  readonly clock: Clock
  readonly limits: SseLimits
  readonly log: Log
}

export interface SocketReader {
  /** The log of this workspace may have grown. */
  hint(workspaceId: string): void
  /** Where the logs end now; those that are behind are looked at. */
  compare(heads: ReadonlyMap<string, number>): void
}

export function createSocketReader(socket: WebSocket, options: SocketReaderOptions): SocketReader {
  const state = new SocketReaderState(socket, options)
  socket.on('message', (data, isBinary) => {
    if (state.unread.length >= UNREAD_MESSAGES_MAX)
      return socket.close(POLICY_VIOLATION, 'more was said than listened to')
    state.unread.push(isBinary ? '' : String(data))
    state.wake()
  })
  socket.once('close', () => state.end())
  run(state).catch((error: unknown) => {
    // The store is away: the client comes back with its numbers.
    options.log.warn({ err: toMoleculeError(error), requestId: options.requestId }, 'a reader of events was cut off')
    socket.close(1011, 'try again')
  })
  return {
    hint(workspaceId) {
      if (!state.cursors.has(workspaceId)) return
      state.stale.add(workspaceId)
      state.wake()
    },
    compare(heads) {
      for (const [id, seq] of state.cursors) if (heads.get(id) !== seq) state.stale.add(id)
      state.wake()
    },
  }
}

class SocketReaderState {
  readonly socket: WebSocket
  readonly options: SocketReaderOptions
  /** Messages of the client that were not read yet. */
  readonly unread: string[] = []
  /** The number of the last row that was sent, of each log that is followed. */
  readonly cursors = new Map<string, number>()
  /** Logs that may have grown. */
  readonly stale = new Set<string>()
  /** Also those that are not named, and come later. */
  others = false
  /** What was sent of each workspace; undefined where `_platform` is not followed. */
  sent: Map<string, string> | undefined
  platformStale = false
  private woken = Promise.withResolvers<void>()
  private stopWatching: (() => void) | undefined

  constructor(socket: WebSocket, options: SocketReaderOptions) {
    this.socket = socket
    this.options = options
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  wake(): void {
    this.woken.resolve()
  }

  async wait(): Promise<void> {
    await this.woken.promise
    this.woken = Promise.withResolvers()
  }

  watchPlatform(): void {
    // Nobody would stop the watching of one that has gone meanwhile.
    if (!this.isOpen) return
    this.stopWatching ??= this.options.platform.watch(() => {
      this.platformStale = true
      this.wake()
    })
  }

  end(): void {
    this.stopWatching?.()
    this.wake()
  }

  /** Resolves when the socket has sent all of it, or is gone. */
  send(messages: readonly string[]): Promise<void> {
    const { socket, options } = this
    if (messages.length === 0 || !this.isOpen) return Promise.resolve()
    return new Promise((resolve) => {
      const tooSlow = options.clock.after(options.limits.unsentMs, () => socket.terminate())
      const done = () => {
        tooSlow()
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
    await state.wait()
  }
}

async function takeNextMessage(state: SocketReaderState): Promise<boolean> {
  const text = state.unread.shift()
  if (text === undefined) return false
  try {
    await subscribe(state, readSubscription(text))
  } catch (thrown) {
    await refuse(state, thrown)
  }
  return true
}

function readSubscription(text: string): words.Subscription {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'a message must be JSON in text', { cause })
  }
  return validateBody(words.subscriptionSchema, body, 'a subscription')
}

async function subscribe(state: SocketReaderState, { subscribe: named, others }: words.Subscription): Promise<void> {
  for (const [name, seq] of Object.entries(named)) {
    try {
      if (name === words.PLATFORM_STREAM) await followPlatform(state)
      else await followLog(state, name, seq ?? undefined)
    } catch (thrown) {
      await refuse(state, thrown, name)
    }
  }
  if (others === undefined) return
  // Before the list is read: who comes in between is then among those that come later.
  state.others = true
  await followPlatform(state)
  const heads = others === 'now' ? await state.options.activity.heads() : undefined
  for (const { workspace } of await visibleWorkspaces(state)) {
    if (Object.hasOwn(named, workspace.id) || state.cursors.has(workspace.id) || !mayFollow(state, workspace.id))
      continue
    await beginLog(state, workspace.id, heads?.get(workspace.id) ?? 0)
  }
}

async function followLog(state: SocketReaderState, workspaceId: string, seq: number | undefined): Promise<void> {
  const { activity, identity } = state.options
  requireOwnWorkspace(identity, workspaceId)
  await beginLog(state, workspaceId, await activity.resolveCursor(workspaceId, seq))
}

async function beginLog(state: SocketReaderState, workspaceId: string, seq: number): Promise<void> {
  state.cursors.set(workspaceId, seq)
  state.stale.add(workspaceId)
  await state.send([words.subscribedMessage(workspaceId, seq)])
}

async function followPlatform(state: SocketReaderState): Promise<void> {
  state.watchPlatform()
  const all = await visibleWorkspaces(state)
  state.sent = new Map(all.map(({ workspace, fingerprint }) => [workspace.id, fingerprint]))
  await state.send([
    words.snapshotMessage(all.map(({ workspace }) => viewWorkspaceFor(state.options.identity, workspace))),
  ])
}

/** Those that the token reaches. */
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
  const news: string[] = []
  const come: string[] = []
  const gone = new Set(sent.keys())
  for (const { workspace, fingerprint } of all) {
    const { id } = workspace
    gone.delete(id)
    const known = sent.get(id)
    if (known === fingerprint) continue
    sent.set(id, fingerprint)
    news.push(
      words.changedMessage(
        known === undefined ? 'created' : 'changed',
        id,
        viewWorkspaceFor(state.options.identity, workspace),
      ),
    )
    if (known === undefined && state.others && !state.cursors.has(id) && mayFollow(state, id)) come.push(id)
  }
  for (const id of gone) {
    sent.delete(id)
    news.push(words.deletedMessage(id))
  }
  await state.send(news)
  for (const id of come) await beginLog(state, id, 0)
  return true
}

/** One page of one log, the one that has waited longest. */
async function sendNextLogPage(state: SocketReaderState): Promise<boolean> {
  const [workspaceId] = state.stale
  if (workspaceId === undefined) return false
  state.stale.delete(workspaceId)
  const cursor = state.cursors.get(workspaceId)
  if (cursor === undefined) return true
  const rows = await state.options.activity.page(workspaceId, cursor)
  const last = rows?.at(-1)
  if (rows === undefined) {
    state.cursors.delete(workspaceId)
    await state.send([words.endedMessage(workspaceId)])
  } else if (last !== undefined) {
    state.cursors.set(workspaceId, last.seq)
    // There may be more than one page.
    state.stale.add(workspaceId)
    await state.send(rows.map((row) => words.eventsMessage(workspaceId, row)))
  }
  return true
}

async function refuse(state: SocketReaderState, thrown: unknown, workspaceId?: string): Promise<void> {
  const error = toMoleculeError(thrown)
  const { requestId, log } = state.options
  log.info({ requestId, code: error.code, reason: error.message, workspaceId }, 'a subscription was refused')
  const { status, body } = errorAnswer(error, requestId)
  const prunedSeq = error.details['prunedSeq']
  const more = typeof prunedSeq === 'number' ? { pruned_seq: prunedSeq } : {}
  await state.send([words.errorMessage(status, { ...(body as object), ...more }, workspaceId)])
}
