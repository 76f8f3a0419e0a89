/**
 * `WS /ws`: events of many workspaces over one socket, for the canvas. The upgrade has the guard of its route. A browser
 * is accepted only from the platform's own page, because browsers let any page open a socket to anywhere. A socket is
 * closed when its token is revoked, its client stops answering pings, or the platform stops. See `reader.ts` for what
 * is sent.
 */

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { connectSocket } from '../../../api/activity.ts'
import { requireAccess } from '../../../api/who-may.ts'
import { REVOKED_CLOSE_CODE } from '../../../client/live-socket.ts'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import type { Log } from '../../../log.ts'
import type { ReadStore } from '../../../store/store.ts'
import { readNeedSummary } from '../../../views/needs/needs.ts'
import type { ReadCards } from '../../../views/workspace-cards.ts'
import { sleep } from '../../../wait.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import { socketRoute } from '../routes/activity.ts'
import type { Addresses } from '../server/addresses.ts'
import { REQUEST_ID_PREFIX, writeAnswer } from '../server/answer.ts'
import type { AuthRequest, HttpAuth } from '../server/auth.ts'
import { errorAnswer, logFailure } from '../server/errors.ts'
import { createRateLimit } from '../server/rate-limit.ts'
import type { SseLimits } from '../server/sse.ts'
import { createPlatformWatch, type PlatformWatch } from './platform-watch.ts'
import { createSocketReader, type SocketReader, type SubscriptionLimits } from './reader.ts'

/** Chosen from the protocols that a client offers; a token among them is never sent back. */
const PROTOCOL = 'molecule'
const TOKEN_PROTOCOL = 'molecule.bearer.'
/** A client that sends a larger message is disconnected. */
const MESSAGE_BYTES_MAX = 128 * 1024
/** Further sockets of a token, or of all, are refused with `too_many_requests`. */
const SOCKETS_PER_TOKEN_MAX = 32
const SOCKETS_MAX = 2000
/** Hints may be lost, so the last numbers of all logs are compared this often. */
const SWEEP_MS = 5000
/** After a hint that names no log, the logs are compared this soon, once for many such hints. */
const SWEEP_SOON_MS = 50
/** A client that has not answered a close by then is disconnected. */
const CLOSE_MS_MAX = 1000
const RETRY_AFTER_MS = 10_000
/** Names in the messages of one token: a page names each workspace once when it connects. */
const NAMES_PER_MINUTE_MAX = 10_000
/** Of these, names that it may not follow or that do not exist. */
const REFUSED_PER_MINUTE_MAX = 500

/** The close code of a platform that stops. */
const GOING_AWAY = 1001

export interface SocketsOptions {
  readonly auth: HttpAuth
  readonly tokens: Pick<Tokens, 'onRevoked'>
  readonly workspaces: Workspaces
  readonly store: ReadStore
  readonly readCards: ReadCards
  readonly logs: WorkspaceLogs
  readonly addresses: Addresses
  readonly clock: Clock
  readonly limits: SseLimits
  readonly log: Log
}

export interface Sockets {
  /** For the `upgrade` event of the server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}

interface OpenSocket {
  readonly socket: WebSocket
  readonly reader: SocketReader
  readonly tokenId: string
}

export function createSockets(options: SocketsOptions): Sockets {
  const { logs, clock } = options
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  })
  const open = new Set<OpenSocket>()
  const platform = createPlatformWatch({ ...options, readNeeds: (all) => readNeedSummary(options.store, all) })
  const subscriptionLimits = createSubscriptionLimits(clock)
  const sweep = createLogSweep(open, options)
  const stopListening = logs.onChange((workspaceId) => {
    if (open.size === 0) return
    if (workspaceId === undefined) sweep.soon()
    else for (const { reader } of open) reader.hint(workspaceId)
    platform.hint()
  })
  let closed = false
  const admit = async (request: IncomingMessage): Promise<Identity> => {
    const identity = await identify(request, options)
    requireAccess(identity, connectSocket.access)
    requireBelowSocketLimits(open, identity)
    return identity
  }
  return {
    upgrade(request, raw, head) {
      const requestId = `${REQUEST_ID_PREFIX}${ulid()}`
      raw.on('error', () => raw.destroy())
      admit(request).then(
        (identity) => {
          // A socket that is upgraded after the door has closed would keep it open for ever.
          if (closed) return void raw.destroy()
          server.handleUpgrade(request, raw, head, (socket) =>
            serveSocket(socket, { ...options, platform, subscriptionLimits, identity, requestId, open }),
          )
        },
        (thrown: unknown) => refuse({ request, raw, requestId }, thrown, options.log),
      )
    },
    async close() {
      closed = true
      stopListening()
      sweep.stop()
      const all = [...open].map(({ socket }) => whenClosed(socket))
      for (const { socket } of open) socket.close(GOING_AWAY, 'the platform stops')
      const finished = new AbortController()
      await Promise.race([Promise.all(all), sleep(clock, CLOSE_MS_MAX, finished.signal)])
      finished.abort()
      for (const { socket } of open) socket.terminate()
      await Promise.all(all)
    },
  }
}

function createSubscriptionLimits(clock: Clock): SubscriptionLimits {
  const names = createRateLimit(clock, {
    timesMax: NAMES_PER_MINUTE_MAX,
    message: `this token named more than ${NAMES_PER_MINUTE_MAX} streams within a minute`,
  })
  const refused = createRateLimit(clock, {
    timesMax: REFUSED_PER_MINUTE_MAX,
    message: `this token named more than ${REFUSED_PER_MINUTE_MAX} wrong streams within a minute`,
  })
  return { countNames: names.count, countRefused: refused.count }
}

async function identify(request: IncomingMessage, { auth, addresses }: SocketsOptions): Promise<Identity> {
  if (!addresses.isOurHost(request)) throw addresses.unknownHost(request)
  if (request.url?.split('?', 1)[0]?.replace(/\/$/, '') !== socketRoute.path) {
    throw new MoleculeError('not_found', `there is no WebSocket here; it is at ${socketRoute.path}`)
  }
  auth.requireOwnPage(request)
  return await auth.identify(asAuthRequest(request))
}

/** A script in a browser cannot set headers of a socket. It can offer protocols, which unlike a URL are in no log. */
function asAuthRequest({ headers, socket }: IncomingMessage): AuthRequest {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim())
  const token = offered?.find((name) => name.startsWith(TOKEN_PROTOCOL))?.slice(TOKEN_PROTOCOL.length)
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  // Not "GET": a GET by cookie needs no Origin, but any page can open a socket and read what it receives.
  return { method: 'UPGRADE', headers: { ...authorization, ...headers }, socket }
}

function requireBelowSocketLimits(open: ReadonlySet<OpenSocket>, identity: Identity): void {
  const own = [...open].filter(({ tokenId }) => tokenId === identity.tokenId).length
  if (own < SOCKETS_PER_TOKEN_MAX && open.size < SOCKETS_MAX) return
  const message = own < SOCKETS_PER_TOKEN_MAX ? 'too many sockets are open' : `this token has ${own} sockets open`
  const details = { retryAfterMs: RETRY_AFTER_MS }
  throw new MoleculeError('too_many_requests', message, { retryable: true, details })
}

interface ServeSocketOptions extends SocketsOptions {
  readonly platform: PlatformWatch
  readonly subscriptionLimits: SubscriptionLimits
  readonly identity: Identity
  readonly requestId: string
  readonly open: Set<OpenSocket>
}

function serveSocket(socket: WebSocket, options: ServeSocketOptions): void {
  const { tokens, identity, open, log, requestId } = options
  const reader = createSocketReader(socket, options)
  const openSocket: OpenSocket = { socket, reader, tokenId: identity.tokenId }
  open.add(openSocket)
  const stopWatching = tokens.onRevoked(identity, () => {
    socket.close(REVOKED_CLOSE_CODE, 'the token was revoked')
    // A client that does not answer the close must not keep a socket whose token is revoked.
    options.clock.after(CLOSE_MS_MAX, () => socket.terminate())
  })
  const stopPinging = keepAlive(socket, options)
  socket.on('error', (error) => log.info({ requestId, reason: error.message }, 'a socket failed'))
  socket.once('close', () => {
    stopPinging()
    stopWatching()
    open.delete(openSocket)
  })
}

/** Prevents dead sockets: a client that has not answered a ping when the next one is due is disconnected. */
function keepAlive(socket: WebSocket, { clock, limits }: SocketsOptions): () => void {
  let answered = true
  let cancel: () => void = () => undefined
  const arm = () => {
    cancel = clock.after(limits.keepAliveMs, () => {
      if (!answered) return socket.terminate()
      answered = false
      if (socket.readyState === socket.OPEN) socket.ping()
      arm()
    })
  }
  socket.on('pong', () => {
    answered = true
  })
  arm()
  return () => cancel()
}

interface LogSweep {
  soon(): void
  stop(): void
}

/** Reads the last numbers of all logs from time to time, once for all sockets, and only while one is open. */
function createLogSweep(open: ReadonlySet<OpenSocket>, { logs, clock, log }: SocketsOptions): LogSweep {
  let cancel: () => void = () => undefined
  let state: 'waiting' | 'soon' | 'comparing' | 'stopped' = 'waiting'
  let again = false
  const compare = async () => {
    if (open.size === 0) return
    const heads = await logs.heads()
    for (const { reader } of open) reader.compare(heads)
  }
  const arm = (next: 'waiting' | 'soon') => {
    state = next
    cancel = clock.after(next === 'soon' ? SWEEP_SOON_MS : SWEEP_MS, () => {
      state = 'comparing'
      again = false
      compare()
        .catch((error: unknown) => log.warn({ err: toMoleculeError(error) }, 'logs could not be compared'))
        .finally(() => {
          if (state !== 'stopped') arm(again ? 'soon' : 'waiting')
        })
    })
  }
  arm('waiting')
  return {
    soon() {
      // A change during a comparison may not be in its result: compare once more.
      again = true
      if (state !== 'waiting') return
      cancel()
      arm('soon')
    },
    stop() {
      state = 'stopped'
      cancel()
    },
  }
}

const whenClosed = (socket: WebSocket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()))

/** Before the upgrade the connection is still HTTP, so the refusal is an HTTP answer. */
function refuse(
  { request, raw, requestId }: { request: IncomingMessage; raw: Duplex; requestId: string },
  thrown: unknown,
  log: Log,
): void {
  const error = toMoleculeError(thrown)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(raw as never)
  response.once('finish', () => raw.end(() => raw.destroy()))
  logFailure(log, error, { request, requestId })
  writeAnswer({ request, response, requestId }, errorAnswer(error, requestId))
}
