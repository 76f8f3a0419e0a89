/**
 * The gRPC door: the third binding of A2A 1.0, on a port of its own. It verifies the token of a call before it reads the
 * message. Everything else, from access rules to limits, comes from the HTTP door through `doors/a2a-calls.ts`. Only
 * `cli/wire.ts` imports this file, and only when the door is used, because it loads the libraries of gRPC.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import {
  type Metadata,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerOptions,
  status as statusCodes,
} from '@grpc/grpc-js'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Metrics } from '../../metrics.ts'
import { sleep } from '../../wait.ts'
import type { A2aCalls, A2aLimits } from '../a2a-calls.ts'
import { limitConnections } from '../connection-limit.ts'
import type { Door } from '../door.ts'
import { listen } from '../listen.ts'
import { createMessageReads } from './message-reads.ts'
import { createGrpcService, GRPC_SERVICE, type GrpcCaller, toStatus } from './service.ts'

export interface GrpcDoorOptions {
  /** Started before this door. Its `close` also ends the waits of this door's calls. */
  readonly httpDoor: { readonly url: string; readonly a2aCalls: A2aCalls }
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  readonly metrics: Metrics
  readonly clock: Clock
  /** How long running calls may finish after `close`. Their connections are closed afterwards. */
  readonly closeGraceMs?: number
}

export interface GrpcDoor extends Door {
  /** Undefined before the start. */
  readonly port: number | undefined
}

const CLOSE_GRACE_MS = 5000

export function createGrpcDoor(options: GrpcDoorOptions): GrpcDoor {
  const { httpDoor, clock } = options
  const listener = createServer()
  const connections = new Map<string, Socket>()
  let server: Server | undefined
  let closed: Promise<void> | undefined
  return {
    name: 'grpc',
    get port() {
      return (listener.address() as AddressInfo | null)?.port
    },
    async start() {
      const calls = httpDoor.a2aCalls
      const callers = createCallers(calls, options)
      server = new Server({ ...limitsOf(calls.limits), interceptors: [callers.verify] })
      const disconnect = (peer: string) => void connections.get(peer)?.destroy()
      const httpHost = (authority: string) => hostOf(authority, new URL(httpDoor.url))
      const service = createGrpcService({ calls, clock, callerOf: callers.callerOf, httpHost, disconnect })
      server.addService(GRPC_SERVICE, service)
      const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
      // HTTP/2 has no answer before its handshake: the connection is closed.
      limitConnections(listener, (socket) => socket.destroy())
      listener.on('connection', (socket) => {
        if (socket.destroyed) return
        track(socket, connections)
        injector.injectConnection(socket)
      })
      await listen(listener, { ...options, flag: '--grpc-port' })
    },
    close() {
      closed ??= closeAll(options, { listener, connections, server })
      return closed
    },
  }
}

/** Named as grpc-js names the peer of a call. */
function track(socket: Socket, connections: Map<string, Socket>): void {
  const peer = `${socket.remoteAddress}:${socket.remotePort}`
  connections.set(peer, socket)
  socket.once('close', () => connections.delete(peer))
}

async function closeAll(
  { clock, closeGraceMs = CLOSE_GRACE_MS }: GrpcDoorOptions,
  opened: { listener: ReturnType<typeof createServer>; connections: Map<string, Socket>; server: Server | undefined },
): Promise<void> {
  const { listener, connections, server } = opened
  // The listener is closed when all of its connections are.
  const listenerClosed = new Promise<void>((resolve) => listener.close(() => resolve()))
  // Each client is asked to send nothing new, and its connection closes after its last running call. The callback comes
  // too early on Node 24, where the server has marked its sessions as closed before.
  server?.tryShutdown(() => undefined)
  const finished = new AbortController()
  await Promise.race([listenerClosed, sleep(clock, closeGraceMs, finished.signal)])
  finished.abort()
  for (const socket of connections.values()) socket.destroy()
  await listenerClosed
}

/** Calls of one connection at a time. More than the streams that a token may open, so that it sees the refusal. */
const CALLS_PER_CONNECTION_MAX = 512
/** A connection without calls is closed after this time; a client opens it again when it needs it. */
const IDLE_MS = 5 * 60_000
/** A client that has not answered a ping within this time is gone. */
const PING_MS_MAX = 20_000

function limitsOf({ requestBytesMax, keepAliveMs }: A2aLimits): ServerOptions {
  return {
    'grpc.max_receive_message_length': requestBytesMax,
    'grpc.max_concurrent_streams': CALLS_PER_CONNECTION_MAX,
    'grpc.max_connection_idle_ms': IDLE_MS,
    'grpc.keepalive_time_ms': keepAliveMs,
    'grpc.keepalive_timeout_ms': PING_MS_MAX,
    // Statistics of grpc-js about each call, which no one reads here.
    'grpc.enable_channelz': 0,
  }
}

/** The HTTP door's host and port. A card names it by the host to which the caller connected. */
function hostOf(authority: string, { hostname, port }: URL): string {
  const url = `http://${authority}`
  return `${URL.canParse(url) ? new URL(url).hostname : hostname}:${port}`
}

interface Callers {
  readonly verify: ServerInterceptor
  readonly callerOf: (metadata: Metadata) => GrpcCaller
}

/**
 * Verifies the token of each call before its message is read: a stranger cannot make the platform hold 8 MiB. A caller
 * with a token can make it hold few unfinished messages (`message-reads.ts`).
 */
function createCallers(calls: A2aCalls, { clock, metrics }: GrpcDoorOptions): Callers {
  const known = new WeakMap<Metadata, GrpcCaller>()
  const reads = createMessageReads()
  const count = (code: number | undefined) =>
    metrics.count('molecule_grpc_requests_total', { status: statusCodes[code ?? statusCodes.OK] ?? 'UNKNOWN' })
  const verify: ServerInterceptor = ({ path }, call) => {
    const requestId = calls.newRequestId()
    let isOver = false
    let endRead: () => void = () => undefined
    const end = () => {
      isOver = true
      stopTimer()
      endRead()
    }
    const refuse = async (thrown: unknown) => {
      end()
      const status = toStatus(await calls.refuse(thrown, { requestId, workspaceId: '', path }), requestId)
      count(status.code)
      call.sendStatus(status)
    }
    const { requestMs } = calls.limits
    const late = () => refuse(new MoleculeError('timeout', `the request did not arrive within ${requestMs / 1000} s`))
    const stopTimer = clock.after(requestMs, () => void late())
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, pass) {
            const { remoteAddress } = call.getConnectionInfo()
            const identified = calls.identify(metadata.get('authorization')[0]?.toString(), remoteAddress)
            const admitted = identified.then((identity) => {
              known.set(metadata, { identity, requestId })
              if (!isOver) endRead = reads.begin(identity.tokenId, () => pass(metadata))
            })
            admitted.catch(refuse)
          },
          onReceiveHalfClose(pass) {
            end()
            pass()
          },
          onCancel: end,
        }),
      sendStatus(status, pass) {
        end()
        count(status.code)
        pass(status)
      },
    })
  }
  return {
    verify,
    callerOf(metadata) {
      const caller = known.get(metadata)
      if (caller === undefined) throw new MoleculeError('internal', 'a call was not verified')
      return caller
    },
  }
}
