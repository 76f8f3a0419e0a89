/**
 * What a route is: an endpoint of the contract (`src/api`) with its handler, in the file of its resource, and listed in
 * `app.ts`. The router, the guard, the API document, the access tests and the fuzz tests all derive from that list.
 * Invariant: a handler sees only a body and parameters that their schemas accepted.
 */
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import type { z } from 'zod'
import type { ApiEndpoint, EndpointBody, EndpointOf, Frozen, PathParameter, RawAnswer } from '../../../api/endpoint.ts'
import type { Action } from '../../../api/who-may.ts'
import type { Clock } from '../../../clock.ts'
import type { Activity } from '../../../inbox/activity.ts'
import type { Bridges } from '../../../inbox/bridges.ts'
import type { Deliveries } from '../../../inbox/delivery.ts'
import type { Budgets, DamagedReplies, DeadLetters, PendingAsks, Rules } from '../../../inbox/owners.ts'
import type { Reception } from '../../../inbox/reception.ts'
import type { Lease } from '../../../inbox/worker.ts'
import type { Log } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { Brief } from '../../../protocol/brief.ts'
import type { ReadStore } from '../../../store/store.ts'
import type { ReadCards } from '../../../views/workspace-cards.ts'
import type { Memories } from '../../../workspaces/memories.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'
import type { Schedule, Schedules } from '../../../workspaces/schedules.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import type { BriefedBridge, WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'
import type { WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import type { ChannelKind } from '../../chat/channel.ts'
import type { ChannelToCheck, CheckedChannel } from '../../chat/check-channel.ts'
import type { Channels } from '../../chat/store/channels.ts'
import type { Pairings } from '../../chat/store/pairings.ts'
import type { AnswerWebhook } from '../../chat/webhook-calls.ts'
import type { AnswerMcp } from '../../mcp-calls.ts'
import type { WorkspaceLogs } from '../../workspace-logs.ts'
import type { PushContext } from '../a2a/push-methods.ts'
import type { Addresses } from '../server/addresses.ts'
import type { HttpAuth } from '../server/auth.ts'
import type { RateLimit } from '../server/rate-limit.ts'
import type { Reach } from '../server/reach.ts'
import type { SseLimits } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'

export type Route = RouterRoute | A2aRoute

interface RouteDescription {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** In the router's syntax: `/workspaces/:id`. */
  readonly path: string
  readonly summary: string
  /** The status of success and its description. */
  readonly success: readonly [status: number, description: string]
}

/** A route that the router serves: an endpoint of the contract with its handler. */
export interface RouterRoute
  extends RouteDescription,
    Pick<ApiEndpoint, 'access' | 'reach' | 'counted' | 'query' | 'answer'> {
  readonly body?: EndpointBody
  readonly handle: (call: RouteCall, app: AppContext) => unknown
}

/** An A2A route. The door answers it before the router, because it is the path of every message. */
export interface A2aRoute extends RouteDescription {
  /** `a2a`: each JSON-RPC method has its own rule. */
  readonly access: Action | 'open' | 'a2a'
  readonly body?: Pick<EndpointBody<z.ZodType>, 'schema' | 'optional'>
  /** The A2A method that a route of the REST binding calls. */
  readonly a2aMethod?: string
  readonly answer?: undefined
  readonly handle?: undefined
}

/**
 * The route of an endpoint. The handler returns the answer, which gets the status of success, or another one that it
 * set in the context; a handler that writes by itself returns a response.
 */
export function serve<Served extends ServableEndpoint>(
  endpoint: Served,
  handle: (call: ServedCall<Served>, app: AppContext) => ServedAnswer<Served['answer']>,
): RouterRoute {
  const { name, success, ...rest } = endpoint
  const [method = '', path = ''] = name.split(' ')
  return {
    ...(rest as unknown as Omit<RouterRoute, 'method' | 'path' | 'success' | 'handle'>),
    success,
    method: method.toLowerCase() as RouterRoute['method'],
    path: path.replaceAll(/\{(\+?)(\w+)\}/g, (_all, deep: string, parameter: string) =>
      deep === '' ? `:${parameter}` : `:${parameter}{.+}`,
    ),
    handle(call, app) {
      call.context.status(success[0] as StatusCode)
      return (handle as RouterRoute['handle'])(call, app)
    },
  }
}

type ServableEndpoint = EndpointOf<
  string,
  Action | 'open',
  z.ZodType | RawAnswer,
  z.ZodObject | undefined,
  z.ZodType | undefined
>

interface ServedCall<Served extends ServableEndpoint> {
  readonly context: Context<HttpEnv>
  readonly params: Readonly<Record<PathParameter<Served['name']>, string>>
  readonly query: Served['query'] extends z.ZodObject ? z.output<Served['query']> : undefined
  readonly identity: Served['access'] extends 'open' ? undefined : Identity
  readonly body: Served['body'] extends EndpointBody<infer Schema extends z.ZodType> ? z.output<Schema> : undefined
}

/** A handler whose answer has no body returns nothing. */
type ServedAnswer<Answer> = Answer extends z.ZodType
  ? Frozen<z.input<Answer>> | Response | Promise<Frozen<z.input<Answer>> | Response>
  : Response | Promise<Response> | Promise<void>

/** One request to a route, after the guard. */
export interface RouteCall {
  readonly context: Context<HttpEnv>
  /** The values of the parameters in the path. */
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  readonly identity: Identity | undefined
  readonly body: unknown
}

/** Node's own request and response, and the id of the request. */
export interface HttpEnv {
  readonly Bindings: HttpBindings & {
    readonly requestId: string
  }
}

/** An agent that Molecule knows, as it is on the machine of the platform. */
export interface FoundAgent {
  /** The backend that runs it, for `runtime`. */
  readonly backend: string
  /** The name of its program. */
  readonly program: string
  /** Where the program is; absent when it is not installed. */
  readonly path?: string
  readonly version?: string
  /** Why the installed program cannot be used. */
  readonly problem?: string
  readonly isLoggedIn: boolean
  /** What pays for its model, such as a variable or a log-in; absent when it is not logged in. */
  readonly pays?: string
  /** What the owner can do to install the program or to log in; absent when nothing is missing. */
  readonly remedy?: string
  /** Its process is kept between two messages. */
  readonly isKeptWarm: boolean
}

/** Contract: `list` starts no model call, and answers from memory when it was called some seconds before. */
export interface FoundAgents {
  list(): Promise<readonly FoundAgent[]>
}

/**
 * Names that only the running platform knows. The document lists them as an enum where a schema says
 * `.meta({ names: 'runtimes' })`: the platform refuses any other.
 */
export interface KnownNames {
  readonly runtimes: readonly string[]
  readonly channelKinds: readonly string[]
}

/** Dependencies of the routes of workspaces. */
export interface WorkspaceRoutesContext {
  /** For views (`src/views`). */
  readonly store: ReadStore
  readonly lifecycle: WorkspaceLifecycle
  readonly files: WorkspaceFiles
  readonly registry: WorkspaceRegistry
  readonly activity: Pick<Activity, 'addNote'>
  readonly logs: WorkspaceLogs
  readonly pending: PendingAsks
  readonly rules: Rules
  readonly budgets: Budgets
  readonly deliveries: Pick<Deliveries, 'resolve'>
  readonly damagedReplies: DamagedReplies
  /** For workspaces that bridges run. */
  readonly bridgeContext: {
    readonly bridges: Bridges
    /** The brief of a lease for this bridge; throws `bad_config`. */
    readonly brief: (lease: Lease, bridge: BriefedBridge) => Promise<Brief>
  }
  readonly memories: Memories
  readonly schedules: Schedules
  /** Sends the messages of schedules. */
  readonly clockDoor: { wake(): void; run(schedule: Schedule): Promise<string> }
  readonly agents: FoundAgents
  readonly chat: ChatRoutesContext
  /** For the API document. */
  readonly knownNames: KnownNames
}

/** What the routes of chat channels need. */
export interface ChatRoutesContext {
  readonly channels: Channels
  readonly pairings: Pairings
  /**
   * Keeps the secrets out of the log and asks the service about the bot. Throws `invalid_request` for a kind or a setting
   * that is unknown or missing, and `bad_config` with one sentence that says what to do.
   */
  check(channel: ChannelToCheck, signal: AbortSignal): Promise<CheckedChannel>
  /** A channel or a pairing changed. */
  wake(): void
  /** A kind of channel, for a caller who will add one; throws `invalid_request`, with the known names. */
  requireKind(kind: string): Promise<ChannelKind>
  /** Undefined where no channel of this name is connected here, or it takes no webhooks. */
  findWebhook(channel: string): AnswerWebhook | undefined
  /** Open deliveries of a channel that is gone need no person. */
  endDeliveries(door: string): Promise<void>
}

/** Dependencies of all routes. */
export interface AppContext extends WorkspaceRoutesContext {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  /** Answers a call to the MCP server of a workspace. */
  readonly mcp: AnswerMcp
  /** Webhooks of tasks; absent when this platform has none. */
  readonly push?: PushContext
  readonly workspaces: Workspaces
  readonly readCards: ReadCards
  readonly tokens: Tokens
  readonly auth: HttpAuth
  readonly addresses: Addresses
  readonly reach: Reach
  readonly waitingCalls: WaitingCalls
  /** Counts the webhooks of an address. */
  readonly webhookLimit: RateLimit
  readonly limits: SseLimits
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  /** Why the platform accepts no work right now; undefined when it does. */
  readonly unready: () => Promise<string | undefined>
  /** The API document as JSON, for a caller that reaches the platform at this URL. */
  readonly openApi: (baseUrl: string) => string
}
