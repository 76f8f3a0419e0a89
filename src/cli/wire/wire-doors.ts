/** Joins the doors for `wire.ts`: HTTP with MCP behind it, gRPC, webhooks, the clock, chat channels. */
import { collectFile } from '../../backends/engine/files/attachments.ts'
import { addToOutbox } from '../../backends/engine/files/outbox.ts'
import { createOutbound } from '../../client/outbound.ts'
import { systemClock } from '../../clock.ts'
import type { PlatformConfig } from '../../config/config.ts'
import type { Outreach } from '../../doors/chat/homes/outreach.ts'
import { type ClockDoor, createClockDoor } from '../../doors/clock/clock.ts'
import type { Door } from '../../doors/door.ts'
import type { GrpcDoor } from '../../doors/grpc/grpc.ts'
import type { PushContext } from '../../doors/http/a2a/push-methods.ts'
import { createHttpDoor, type HttpDoor } from '../../doors/http/http.ts'
import type { ChatRoutesContext } from '../../doors/http/routes/route.ts'
import { createMcp } from '../../doors/mcp/mcp.ts'
import { createWebhooks } from '../../doors/webhooks/webhooks.ts'
import { createWorkspaceLogs, type WorkspaceLogs } from '../../doors/workspace-logs.ts'
import type { LocalInbox } from '../../inbox/local/local-inbox.ts'
import type { Reception } from '../../inbox/reception.ts'
import type { MaskingLog } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import type { Store } from '../../store/store.ts'
import type { Tokens } from '../../workspaces/tokens.ts'
import type { WorkspaceLifecycle } from '../../workspaces/workspace.ts'
import { readVersion } from '../version.ts'
import { createTranscriber } from './voice-command.ts'
import type { WiredBackends } from './wire-backends.ts'
import { wireChat } from './wire-chat.ts'
import type { WiredWorkspaces } from './wire-workspaces.ts'

export interface WireDoorsOptions {
  readonly config: PlatformConfig
  readonly log: MaskingLog
  readonly metrics: Metrics
  readonly store: Store
  readonly inbox: LocalInbox
  /** That of the inbox, which refuses messages while the disk is full. */
  readonly reception: Reception
  readonly workspaces: WiredWorkspaces
  readonly lifecycle: WorkspaceLifecycle
  readonly backends: WiredBackends
  readonly tokens: Tokens
  readonly host: string
  /** Why the platform accepts no work right now, or undefined when it does. */
  readonly unready: () => Promise<string | undefined>
}

export interface WiredDoors {
  readonly http: HttpDoor
  /** Undefined without `--grpc-port`. */
  readonly grpc: GrpcDoor | undefined
  /** Doors that begin work by themselves: they start after the others and close before them. */
  readonly active: readonly Door[]
}

export async function wireDoors(options: WireDoorsOptions): Promise<WiredDoors> {
  const { config, log, metrics, store, inbox, reception, workspaces, lifecycle, host } = options
  const outbound = createOutbound({ allow: config.allowOutbound })
  const { pushConfigs: configs } = inbox
  const webhooks = createWebhooks({ configs, reception: inbox.reception, outbound, clock: systemClock, log })
  const push = { configs, check: outbound.check, wake: webhooks.wake }
  const clockDoor = createClockDoor({ schedules: workspaces.schedules, reception, clock: systemClock, log })
  const logs = createWorkspaceLogs(inbox)
  const { chatDoor, chat, outreach } = wireChat({
    store,
    inbox,
    reception,
    workspaces: workspaces.workspaces,
    lifecycle,
    logs,
    channelKinds: options.backends.channelKinds,
    log,
    host,
    transcribe: transcriberOf(options),
    dataDir: config.dataDir,
  })
  const grpcPort = () => grpc?.port
  const http = wireHttp(options, { clockDoor, logs, chat, outreach, push, grpcPort })
  const grpc = await wireGrpc(config, http, metrics)
  return { http, grpc, active: [webhooks, clockDoor, chatDoor] }
}

function transcriberOf({ config, backends: { processes, environment } }: WireDoorsOptions) {
  const { voiceCommand: command } = config
  return command === undefined ? undefined : createTranscriber({ command, processes, environment })
}

interface PartsBehindHttp {
  readonly clockDoor: ClockDoor
  readonly logs: WorkspaceLogs
  readonly chat: ChatRoutesContext
  readonly outreach: Outreach
  readonly push: PushContext
  readonly grpcPort: () => number | undefined
}

function wireHttp(
  options: WireDoorsOptions,
  { clockDoor, logs, chat, outreach, push, grpcPort }: PartsBehindHttp,
): HttpDoor {
  const { config, log, metrics, inbox, reception, workspaces, lifecycle, backends, tokens, unready } = options
  const version = readVersion()
  const mcp = createMcp({
    reception,
    workspaces: workspaces.workspaces,
    registry: workspaces.registry,
    memories: workspaces.memories,
    activity: inbox.activity,
    outreach,
    workingFiles: { read: collectFile, attach: addToOutbox },
    store: inbox.store,
    clock: systemClock,
    version,
  })
  return createHttpDoor({
    host: config.host,
    port: config.port,
    publicUrls: config.publicUrls,
    trustedProxies: config.trustedProxies,
    maxBlockMs: config.maxBlockMs,
    grpcPort,
    version,
    clock: systemClock,
    log,
    metrics,
    unready,
    tokens,
    reception,
    store: inbox.store,
    activity: inbox.activity,
    pending: inbox.pendingAsks,
    rules: inbox.rules,
    budgets: inbox.budgets,
    deadLetters: inbox.deadLetters,
    deliveries: inbox.deliveries,
    damagedReplies: inbox.damagedReplies,
    bridgeContext: { bridges: inbox.bridges, brief: workspaces.brief },
    workspaces: workspaces.workspaces,
    registry: workspaces.registry,
    files: workspaces.files,
    memories: workspaces.memories,
    schedules: workspaces.schedules,
    lifecycle,
    logs,
    clockDoor,
    chat,
    push,
    mcp,
    agents: backends.agents,
    knownNames: { runtimes: backends.runtimes, channelKinds: backends.channelKinds.names() },
  })
}

/** Loads the libraries of gRPC only when the door is used: that takes 0.3 s. */
async function wireGrpc(
  { host, grpcPort: port }: PlatformConfig,
  httpDoor: HttpDoor,
  metrics: Metrics,
): Promise<GrpcDoor | undefined> {
  if (port === undefined) return undefined
  const { createGrpcDoor } = await import('../../doors/grpc/grpc.ts')
  return createGrpcDoor({ httpDoor, metrics, host, port, clock: systemClock })
}
