/**
 * The HTTP door: one Node server. Every request gets an id and has its Host checked. Then A2A goes straight to
 * `a2a/a2a.ts`, an upgrade to `socket/sockets.ts`, and everything else through Hono to `routes/`.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { DeadLetters } from '../../inbox/owners.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { Log } from '../../log.ts'
import { createMetrics, type Metrics } from '../../metrics.ts'
import { createCardReader } from '../../views/workspace-cards.ts'
import type { Tokens } from '../../workspaces/tokens.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import type { A2aCalls } from '../a2a-calls.ts'
import { limitConnections } from '../connection-limit.ts'
import type { Door } from '../door.ts'
import { listen } from '../listen.ts'
import type { AnswerMcp } from '../mcp-calls.ts'
import { a2aAddress, createA2a } from './a2a/a2a.ts'
import { createA2aCalls } from './a2a/calls.ts'
import type { PushContext } from './a2a/push-methods.ts'
import { createApp } from './app.ts'
import type { WorkspaceRoutesContext } from './routes/route.ts'
import { type Addresses, createAddresses } from './server/addresses.ts'
import {
  type HttpExchange,
  isRefusedBeforeBody,
  REQUEST_ID_HEADER,
  REQUEST_ID_PREFIX,
  writeAnswer,
} from './server/answer.ts'
import { createHttpAuth } from './server/auth.ts'
import { errorAnswer, logFailure } from './server/errors.ts'
import { answerOneAtATime, closeServer, createInFlight, refuseConnection, urlOf } from './server/listen.ts'
import { BODY_BYTES, createRateLimit, INBOUND_WEBHOOKS } from './server/rate-limit.ts'
import { createReach } from './server/reach.ts'
import { limitRefusals } from './server/refusal-log.ts'
import { SSE_LIMITS, type SseLimits } from './server/sse.ts'
import { createWaitingCalls, type WaitingCalls } from './server/waiting-calls.ts'
import { createWrongTokenLimit } from './server/wrong-token-limit.ts'
import { createSockets, type Sockets } from './socket/sockets.ts'

export interface HttpDoorOptions extends WorkspaceRoutesContext {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  /** Answers a call to the MCP server of a workspace. */
  readonly mcp: AnswerMcp
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  /** Counts requests; shown by `/metrics`, with the load. */
  readonly metrics?: Metrics
  readonly log: Log
  readonly clock: Clock
  readonly host: string
  /** Origins by which other machines reach this platform; cards and links show the first. */
  readonly publicUrls?: readonly string[]
  /** Addresses and ranges of proxies whose `X-Forwarded-*` headers count. */
  readonly trustedProxies?: readonly string[]
  /** 0 = any free port. */
  readonly port: number
  readonly version: string
  /** How long a blocking call waits before it is answered with the unfinished task. */
  readonly maxBlockMs: number
  /** The port of the gRPC door, for cards; undefined without one. */
  readonly grpcPort?: () => number | undefined
  /** Webhooks of tasks; absent when this platform has none. */
  readonly push?: PushContext
  /** Why the platform accepts no work right now, or undefined when it does; for `/ready`. */
  readonly unready: () => Promise<string | undefined>
  /** How long running requests may finish after `close`. Their connections are closed afterwards. */
  readonly closeGraceMs?: number
  /** How long a client may take to send a whole request. Its connection is closed afterwards. */
  readonly requestTimeoutMs?: number
  /** Connections of one remote address. One more gets 429. */
  readonly connectionsPerAddressMax?: number
  /** How long streams may be silent, and how slow their readers may be. */
  readonly sseLimits?: SseLimits
}

export interface HttpDoor extends Door {
  /** The address for clients on this machine; known once the door is started. */
  readonly url: string
  /** For doors with another binding of A2A; usable once this door is started. */
  readonly a2aCalls: A2aCalls
}

const CLOSE_GRACE_MS = 5000
const REQUEST_TIMEOUT_MS = 60_000
const HEADERS_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 60_000

export function createHttpDoor(options: HttpDoorOptions): HttpDoor {
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
  const server = createServer({
    requestTimeout,
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeout),
    connectionsCheckingInterval: Math.min(5000, requestTimeout),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Some clients offer HTTP/2 with every request. Node would treat that as an upgrade and not answer them.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  })
  limitConnections(server, refuseConnection, options.connectionsPerAddressMax)
  const waitingCalls = createWaitingCalls(options.tokens)
  const inFlight = createInFlight()
  let sockets: Sockets | undefined
  let a2aCalls: A2aCalls | undefined
  let closed: Promise<void> | undefined
  return {
    name: 'http',
    get url() {
      return urlOf(server, options.host)
    },
    get a2aCalls() {
      if (a2aCalls === undefined) throw new MoleculeError('internal', 'the http door is not started')
      return a2aCalls
    },
    async start() {
      await listen(server, { ...options, flag: '--port' })
      const unready = async () => (closed === undefined ? options.unready() : 'shutting down')
      const port = (server.address() as AddressInfo).port
      const log = limitRefusals(options.log, options.clock)
      const created = createListener({ ...options, log, unready }, waitingCalls, port)
      sockets = created.sockets
      a2aCalls = created.a2aCalls
      const onRequest = answerOneAtATime((request, response) => {
        inFlight.add(response)
        created.listener(request, response)
      })
      server.on('request', onRequest)
      server.on('upgrade', sockets.upgrade)
      server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
        // Prevents a useless upload: a body that would be refused gets no `100 Continue`.
        if (!isRefusedBeforeBody(request)) response.writeContinue()
        server.emit('request', request, response)
      })
    },
    close() {
      closed ??= closeServer(server, {
        endWaits: waitingCalls.end,
        closeSockets: sockets?.close,
        inFlight,
        clock: options.clock,
        graceMs: options.closeGraceMs ?? CLOSE_GRACE_MS,
      })
      return closed
    },
  }
}

function createListener(options: HttpDoorOptions, waitingCalls: WaitingCalls, port: number) {
  const { log, tokens } = options
  const addresses = createAddresses(options)
  const auth = createHttpAuth({
    tokens,
    port,
    addresses,
    rateLimit: createRateLimit(options.clock),
    byteLimit: createRateLimit(options.clock, BODY_BYTES),
    wrongTokenLimit: createWrongTokenLimit(options.clock),
  })
  const reach = createReach(options.workspaces)
  const metrics = options.metrics ?? createMetrics()
  const readCards = createCardReader(options.store)
  const streaming = { waitingCalls, limits: options.sseLimits ?? SSE_LIMITS }
  const a2aOptions = { ...options, ...streaming, auth, addresses, reach }
  const a2a = createA2a(a2aOptions)
  const a2aCalls = createA2aCalls(a2aOptions, options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS)
  const webhookLimit = createRateLimit(options.clock, INBOUND_WEBHOOKS)
  const app = createApp({ ...options, ...streaming, auth, addresses, reach, readCards, metrics, webhookLimit })
  const sockets = createSockets({ ...options, limits: streaming.limits, readCards, auth, addresses })
  const honoListener = getRequestListener(
    (request, env) => app.fetch(request, { ...env, requestId: String(env.outgoing.getHeader(REQUEST_ID_HEADER)) }),
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  )
  const listener: RequestListener = (request, response) => {
    response.once('close', () => countRequest(metrics, response))
    const requestId = `${REQUEST_ID_PREFIX}${ulid()}`
    if (!addresses.isOurHost(request)) return refuseHost({ request, response, requestId }, { addresses, log })
    if (request.method === 'TRACE') return refuseTrace({ request, response, requestId }, log)
    const address = a2aAddress(request.method, request.url)
    if (address !== undefined) {
      a2a({ request, response, requestId }, address).catch((thrown: unknown) => {
        // An unhandled rejection would end the platform for all callers.
        logFailure(log, toMoleculeError(thrown), { request, requestId })
        response.destroy()
      })
      return
    }
    response.setHeader(REQUEST_ID_HEADER, requestId)
    response.setHeader('X-Content-Type-Options', 'nosniff')
    // An answer depends on the cookie or the token: a browser or a proxy that kept it would show it to the next person.
    response.setHeader('Cache-Control', 'no-store')
    void honoListener(request, response)
  }
  return { listener, sockets, a2aCalls }
}

/** Labelled with the status class only: a path or a client as a label would make one series for each. */
function countRequest(metrics: Metrics, { headersSent, statusCode }: ServerResponse): void {
  const status = headersSent ? `${Math.floor(statusCode / 100)}xx` : 'none'
  metrics.count('molecule_http_requests_total', { status })
}

/** Prevents a 500: the router's kind of request does not exist with this method. An echo would also show credentials. */
function refuseTrace(exchange: HttpExchange, log: Log): void {
  const error = new MoleculeError('invalid_request', 'TRACE is not answered here')
  logFailure(log, error, exchange)
  const headers = { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' }
  writeAnswer(exchange, { ...errorAnswer(error, exchange.requestId), status: 405, headers })
}

function refuseHost(exchange: HttpExchange, { addresses, log }: { addresses: Addresses; log: Log }): void {
  const error = addresses.unknownHost(exchange.request)
  logFailure(log, error, exchange)
  writeAnswer(exchange, errorAnswer(error, exchange.requestId))
}
