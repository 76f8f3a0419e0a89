/**
 * `WS /ws`: events of many workspaces over one socket, for the canvas. The upgrade is guarded as every route is; a
 * cookie counts only from a page of ours, because browsers let any page open a socket to anywhere. A socket ends with
 * its token, with its silence and with the platform. What is said over it is `ws-reader.ts`.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import type { Activity } from '../../../inbox/readers.ts'
import type { Log } from '../../../log.ts'
import { sleep } from '../../../wait.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import { socketRoute } from '../routes/events.ts'
import { REQUEST_ID_PREFIX, writeAnswer } from '../server/answer.ts'
import { type AuthRequest, type HttpAuth, requireAccess } from '../server/auth.ts'
import { errorAnswer, logFailure } from '../server/errors.ts'
import type { HostRule } from '../server/host-rule.ts'
import type { SseLimits } from '../server/sse.ts'
import { createPlatformWatch, type PlatformWatch } from './platform-watch.ts'
import { createSocketReader, type SocketReader } from './reader.ts'

/** What is chosen of the protocols that a client offers; a token among them is never said back. */
const PROTOCOL = 'molecule'
const TOKEN_PROTOCOL = 'molecule.bearer.'
const MESSAGE_BYTES_MAX = 128 * 1024
export const SOCKETS_PER_TOKEN_MAX = 32
const SOCKETS_MAX = 2000
/** Hints may be lost; this often the ends of all logs are compared. */
const SWEEP_MS = 5000
/** A hint that does not say which log: they are compared soon, once for many such hints. */
const SWEEP_SOON_MS = 50
const CLOSE_MS_MAX = 1000
const RETRY_AFTER_MS = 10_000

/** Close codes: the token is no longer good; the platform stops. */
const REVOKED = 4401
const GOING_AWAY = 1001

export interface SocketsOptions {
  readonly auth: HttpAuth
  readonly tokens: Pick<Tokens, 'onRevoked'>
  readonly workspaces: Workspaces
  readonly activity: Activity
  readonly isOurHost: HostRule
  readonly clock: Clock
  readonly limits: SseLimits
  readonly log: Log
}

export interface Sockets {
  /** For the server's `upgrade`. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}

interface OpenSocket {
  readonly socket: WebSocket
  readonly reader: SocketReader
  readonly tokenId: string
}

export function createSockets(options: SocketsOptions): Sockets {
  const { activity, clock } = options
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  })
  const open = new Set<OpenSocket>()
  const platform = createPlatformWatch(options)
  const sweep = createLogSweep(open, options)
  const stopListening = activity.onChange((workspaceId) => {
    if (open.size === 0) return
    if (workspaceId === undefined) sweep.soon()
    else for (const { reader } of open) reader.hint(workspaceId)
    platform.hint()
  })
  let closed = false
  const admit = async (request: IncomingMessage): Promise<Identity> => {
    const identity = await identify(request, options)
    requireAccess(identity, socketRoute.access)
    requireBelowSocketLimits(open, identity)
    return identity
  }
  return {
    upgrade(request, raw, head) {
      const requestId = `${REQUEST_ID_PREFIX}${ulid()}`
      raw.on('error', () => raw.destroy())
      admit(request).then(
        (identity) => {
          // One that came in while the door closed would hold it open for ever.
          if (closed) return void raw.destroy()
          server.handleUpgrade(request, raw, head, (socket) =>
            serveSocket(socket, { ...options, platform, identity, requestId, open }),
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
      const enough = new AbortController()
      await Promise.race([Promise.all(all), sleep(clock, CLOSE_MS_MAX, enough.signal)])
      enough.abort()
      for (const { socket } of open) socket.terminate()
      await Promise.all(all)
    },
  }
}

async function identify(request: IncomingMessage, { auth, isOurHost }: SocketsOptions): Promise<Identity> {
  if (!isOurHost(request.headers.host)) {
    throw new MoleculeError('forbidden', 'this platform is not called that; use localhost or its address')
  }
  if (request.url?.split('?', 1)[0] !== socketRoute.path) {
    throw new MoleculeError('not_found', `there is no WebSocket here; it is at ${socketRoute.path}`)
  }
  return await auth.identify(asAuthRequest(request))
}

/** A browser's script cannot set headers of a socket; it can offer protocols, which unlike a URL nobody logs. */
function asAuthRequest({ headers, socket }: IncomingMessage): AuthRequest {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim())
  const token = offered?.find((name) => name.startsWith(TOKEN_PROTOCOL))?.slice(TOKEN_PROTOCOL.length)
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  // Not "GET": of a cookie's socket the Origin must be ours, for what it reads is more than a page may read.
  return { method: 'UPGRADE', headers: { ...authorization, ...headers }, socket }
}

function requireBelowSocketLimits(open: ReadonlySet<OpenSocket>, identity: Identity): void {
  const own = [...open].filter(({ tokenId }) => tokenId === identity.tokenId).length
  if (own < SOCKETS_PER_TOKEN_MAX && open.size < SOCKETS_MAX) return
  const message = own < SOCKETS_PER_TOKEN_MAX ? 'too many sockets are open' : `this token has ${own} sockets open`
  const details = { retryAfterMs: RETRY_AFTER_MS }
  throw new MoleculeError('too_many_requests', message, { retryable: true, details })
}

interface Attendance extends SocketsOptions {
  readonly platform: PlatformWatch
  readonly identity: Identity
  readonly requestId: string
  readonly open: Set<OpenSocket>
}

function serveSocket(socket: WebSocket, options: Attendance): void {
  const { tokens, identity, open, log, requestId } = options
  const reader = createSocketReader(socket, options)
  const one: OpenSocket = { socket, reader, tokenId: identity.tokenId }
  open.add(one)
  const stopWatching = tokens.onRevoked(identity.tokenId, () => {
    socket.close(REVOKED, 'the token was revoked')
    // Who does not answer the close is not waited for: nothing more is said to it.
    options.clock.after(CLOSE_MS_MAX, () => socket.terminate())
  })
  const stopPinging = keepAlive(socket, options)
  socket.on('error', (error) => log.info({ requestId, reason: error.message }, 'a socket was cut off'))
  socket.once('close', () => {
    stopPinging()
    stopWatching()
    open.delete(one)
  })
}

/** A client that has not answered one ping by the time of the next is gone, whatever its connection says. */
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

/** Reads the ends of all logs now and then, once for all readers, and only while there are any. */
function createLogSweep(open: ReadonlySet<OpenSocket>, { activity, clock, log }: SocketsOptions): LogSweep {
  let cancel: () => void = () => undefined
  let state: 'waiting' | 'hurrying' | 'looking' | 'stopped' = 'waiting'
  let again = false
  const look = async () => {
    if (open.size === 0) return
    const heads = await activity.heads()
    for (const { reader } of open) reader.compare(heads)
  }
  const arm = (next: 'waiting' | 'hurrying') => {
    state = next
    cancel = clock.after(next === 'hurrying' ? SWEEP_SOON_MS : SWEEP_MS, () => {
      state = 'looking'
      again = false
      look()
        .catch((error: unknown) => log.warn({ err: toMoleculeError(error) }, 'logs could not be compared'))
        .finally(() => {
          if (state !== 'stopped') arm(again ? 'hurrying' : 'waiting')
        })
    })
  }
  arm('waiting')
  return {
    soon() {
      // What changes while it looks may not be in what it sees.
      again = true
      if (state !== 'waiting') return
      cancel()
      arm('hurrying')
    },
    stop() {
      state = 'stopped'
      cancel()
    },
  }
}

const whenClosed = (socket: WebSocket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()))

interface Refused {
  readonly request: IncomingMessage
  readonly raw: Duplex
  readonly requestId: string
}

/** Before the upgrade it is still HTTP, and is answered as such. */
function refuse({ request, raw, requestId }: Refused, thrown: unknown, log: Log): void {
  const error = toMoleculeError(thrown)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(raw as never)
  response.once('finish', () => raw.end(() => raw.destroy()))
  logFailure(log, error, { request, response, requestId })
  writeAnswer({ request, response, requestId }, errorAnswer(error, requestId))
}
