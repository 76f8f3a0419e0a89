/**
 * The HTTP door: one Node server. Every request gets an id and has its Host checked; A2A then goes straight to
 * `a2a.ts`, an upgrade to `ws.ts`, everything else through Hono. Closing answers whoever waits, lets running requests finish within a limit
 * and leaves no socket open.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { Reception } from '../../inbox/inbox.ts'
import type { DeadLetters } from '../../inbox/owners.ts'
import type { LoadReport } from '../../inbox/readers.ts'
import type { Log } from '../../log.ts'
import { createMetrics, type Metrics } from '../../metrics.ts'
import { sleep } from '../../wait.ts'
import type { Tokens } from '../../workspaces/tokens.ts'
import type { Workspaces } from '../../workspaces/workspace.ts'
import type { Door } from '../door.ts'
import { a2aAddress, createA2a } from './a2a/a2a.ts'
import type { PushContext } from './a2a/push-methods.ts'
import { answerOneAtATime } from './one-after-another.ts'
import { createApp, type WorkspaceRoutesContext } from './routes/app.ts'
import {
  type HttpExchange,
  isRefusedBeforeBody,
  REQUEST_ID_HEADER,
  REQUEST_ID_PREFIX,
  writeAnswer,
} from './server/answer.ts'
import { createHttpAuth } from './server/auth.ts'
import { errorAnswer, logFailure } from './server/errors.ts'
import { createHostRule } from './server/host-rule.ts'
import { createRateLimit } from './server/rate-limit.ts'
import { createReach } from './server/reach.ts'
import { SSE_LIMITS, type SseLimits } from './server/sse.ts'
import { createWaitingCalls, type WaitingCalls } from './server/waiting-calls.ts'
import { createWrongTokenLimit } from './server/wrong-token-limit.ts'
import { createSockets, type Sockets } from './socket/sockets.ts'

export interface HttpDoorOptions extends WorkspaceRoutesContext {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  /** Where requests are counted, and how much waits; for `/metrics`. */
  readonly metrics?: Metrics
  readonly load?: () => Promise<LoadReport>
  readonly log: Log
  readonly clock: Clock
  readonly host: string
  /** 0 = any free one. */
  readonly port: number
  readonly version: string
  /** How long a blocking call waits before it answers with the task as it is. */
  readonly maxBlockMs: number
  /** Webhooks of tasks; absent where there are none. */
  readonly push?: PushContext
  /** Why the platform takes no work right now, or undefined when it does; `/ready` asks. */
  readonly unready: () => Promise<string | undefined>
  /** How long running requests may finish after `close`. */
  readonly closeGraceMs?: number
  /** How long a client may take to send a whole request. */
  readonly requestTimeoutMs?: number
  /** How long streams may be silent, and how slow their readers. */
  readonly sseLimits?: SseLimits
}

export interface HttpDoor extends Door {
  /** Where it is reached from this machine; known once it is started. */
  readonly url: string
}

const CLOSE_GRACE_MS = 5000
const REQUEST_TIMEOUT_MS = 60_000
const HEADERS_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 60_000

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

export function createHttpDoor(options: HttpDoorOptions): HttpDoor {
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
  const server = createServer({
    requestTimeout,
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeout),
    connectionsCheckingInterval: Math.min(5000, requestTimeout),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Some clients offer HTTP/2 in passing with every request; that is no reason not to answer them.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  })
  const waiting = createWaitingCalls(options.tokens)
  const inFlight = createInFlight()
  let sockets: Sockets | undefined
  let closed: Promise<void> | undefined
  return {
    name: 'http',
    get url() {
      return urlOf(server, options.host)
    },
    async start() {
      await listen(server, options)
      const unready = async () => (closed === undefined ? options.unready() : 'shutting down')
      const port = (server.address() as AddressInfo).port
      const attending = createListener({ ...options, unready }, waiting, port)
      const { listener } = attending
      sockets = attending.sockets
      const take = answerOneAtATime((request, response) => {
        inFlight.add(response)
        listener(request, response)
      })
      server.on('request', take)
      server.on('upgrade', sockets.upgrade)
      server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
        // A client that asks first is told the truth before it sends: no `100 Continue` for what would be refused.
        if (!isRefusedBeforeBody(request)) response.writeContinue()
        server.emit('request', request, response)
      })
    },
    close() {
      closed ??= closeServer(
        { server, waiting, inFlight, sockets, clock: options.clock },
        options.closeGraceMs ?? CLOSE_GRACE_MS,
      )
      return closed
    },
  }
}

interface Attending {
  readonly listener: RequestListener
  readonly sockets: Sockets
}

function createListener(options: HttpDoorOptions, waiting: WaitingCalls, port: number): Attending {
  const { log, tokens } = options
  const auth = createHttpAuth({
    ...{ tokens, port },
    rateLimit: createRateLimit(options.clock),
    wrongTokenLimit: createWrongTokenLimit(options.clock),
  })
  const reach = createReach(options.workspaces)
  const metrics = options.metrics ?? createMetrics()
  const isOurHost = createHostRule(options.host)
  const streaming = { waiting, limits: options.sseLimits ?? SSE_LIMITS }
  const a2a = createA2a({ ...options, ...streaming, auth, reach })
  const app = createApp({ load: async () => NO_LOAD, ...options, ...streaming, auth, reach, metrics })
  const sockets = createSockets({ ...options, limits: streaming.limits, auth, isOurHost })
  const honoListener = getRequestListener(
    (request, env) => app.fetch(request, { ...env, requestId: String(env.outgoing.getHeader(REQUEST_ID_HEADER)) }),
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  )
  const listener: RequestListener = (request, response) => {
    response.once('close', () => countRequest(metrics, response))
    const requestId = `${REQUEST_ID_PREFIX}${ulid()}`
    if (!isOurHost(request.headers.host)) return refuseHost({ request, response, requestId }, log)
    const address = a2aAddress(request.method, request.url)
    if (address !== undefined) {
      a2a({ request, response, requestId }, address).catch((thrown: unknown) => {
        // Whatever goes wrong in answering one caller must not end the platform for all.
        logFailure(log, toMoleculeError(thrown), { request, response, requestId })
        response.destroy()
      })
      return
    }
    response.setHeader(REQUEST_ID_HEADER, requestId)
    response.setHeader('X-Content-Type-Options', 'nosniff')
    void honoListener(request, response)
  }
  return { listener, sockets }
}

const NO_LOAD: LoadReport = { waiting: 0, running: 0, workspaces: [] }

/** By class alone: a path or a client as a label would be a series for each. */
function countRequest(metrics: Metrics, { headersSent, statusCode }: ServerResponse): void {
  const status = headersSent ? `${Math.floor(statusCode / 100)}xx` : 'none'
  metrics.count('molecule_http_requests_total', { status })
}

function refuseHost(exchange: HttpExchange, log: Log): void {
  const host = JSON.stringify(exchange.request.headers.host ?? '')
  const error = new MoleculeError('forbidden', `this platform is not called ${host}; use localhost or its address`)
  logFailure(log, error, exchange)
  writeAnswer(exchange, errorAnswer(error, exchange.requestId))
}

function listen(server: Server, { host, port }: HttpDoorOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => reject(listenFailure(cause, host, port))
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve()
    })
  })
}

function listenFailure(cause: NodeJS.ErrnoException, host: string, port: number): MoleculeError {
  const details = { host, port }
  if (cause.code === 'EADDRINUSE') {
    return new MoleculeError('in_use', `port ${port} on ${host} is taken; choose another with --port`, {
      cause,
      details,
    })
  }
  const problem = cause.code === 'EACCES' ? 'not allowed' : (cause.code ?? cause.message)
  const message = `cannot listen on ${host} port ${port} (${problem}); choose others with --host and --port`
  return new MoleculeError('bad_config', message, { cause, details })
}

/** A wildcard is no address to go to; from this machine loopback is. */
const LOOPBACK_OF_WILDCARD: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

function urlOf(server: Server, host: string): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new MoleculeError('internal', 'the http door is not open')
  const reachable = LOOPBACK_OF_WILDCARD[host] ?? host
  return `http://${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${address.port}`
}

interface InFlight {
  add(response: ServerResponse): void
  /** Resolves when none is left. From now on each connection ends with its answer. */
  finish(): Promise<void>
}

function createInFlight(): InFlight {
  const responses = new Set<ServerResponse>()
  const none = Promise.withResolvers<void>()
  let finishing = false
  return {
    add(response) {
      responses.add(response)
      if (finishing) response.shouldKeepAlive = false
      response.once('close', () => {
        responses.delete(response)
        if (finishing && responses.size === 0) none.resolve()
      })
    },
    finish() {
      finishing = true
      for (const response of responses) response.shouldKeepAlive = false
      if (responses.size === 0) none.resolve()
      return none.promise
    },
  }
}

interface Closing {
  readonly server: Server
  readonly waiting: WaitingCalls
  readonly inFlight: InFlight
  readonly sockets: Sockets | undefined
  readonly clock: Clock
}

async function closeServer({ server, waiting, inFlight, sockets, clock }: Closing, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  waiting.end()
  // The server waits for every connection, and knows nothing of those that were upgraded.
  const socketsClosed = sockets?.close()
  const enough = new AbortController()
  await Promise.race([inFlight.finish(), sleep(clock, graceMs, enough.signal)])
  enough.abort()
  server.closeAllConnections()
  await socketsClosed
  await closed
}
