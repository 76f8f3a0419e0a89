/**
 * What a route is: one value, declared in the file of its resource and listed in `app.ts`. The router, the guard, the
 * API document, the access tests and the fuzz tests all derive from that list.
 * Invariant: a route without an access rule does not compile, and a handler sees only a body that its schema accepted.
 */
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { z } from 'zod'
import type { Clock } from '../../../clock.ts'
import type { Deliveries } from '../../../inbox/delivery.ts'
import type { Bridges, Lease, Reception } from '../../../inbox/inbox.ts'
import type { LoadReport, Overview } from '../../../inbox/load-readers.ts'
import type { Budgets, DamagedReplies, DeadLetters, PendingAsks, Rules } from '../../../inbox/owners.ts'
import type { Activity, Conversations, Stories, UsageReader } from '../../../inbox/readers.ts'
import type { Log } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { Brief } from '../../../protocol/brief.ts'
import type { Channels } from '../../../workspaces/channels.ts'
import type { Memories } from '../../../workspaces/memories.ts'
import type { Pairings } from '../../../workspaces/pairings.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'
import type { Schedule, Schedules } from '../../../workspaces/schedules.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import type { BriefedBridge, WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'
import type { WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import type { ChannelCheck, ChannelOptions } from '../../chat/channel.ts'
import type { AnswerMcp } from '../../mcp-calls.ts'
import type { NeedsYou } from '../../needs-you.ts'
import type { Action } from '../../who-may.ts'
import type { PushContext } from '../a2a/push-methods.ts'
import type { Addresses } from '../server/addresses.ts'
import type { HttpAuth } from '../server/auth.ts'
import type { Reach } from '../server/reach.ts'
import type { SseLimits } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'

/** Declares a route that the router serves. Only this function sees the types of path and body; the list does not. */
export function route<
  const Path extends string,
  Access extends Action | 'open',
  Schema extends z.ZodObject | undefined = undefined,
>(value: RouteInput<Path, Access, Schema>): RouterRoute<Access> {
  return value as unknown as RouterRoute<Access>
}

export type Route = RouterRoute | A2aRoute

interface RouteDescription {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** In the router's syntax: `/workspaces/:id`. */
  readonly path: string
  readonly summary: string
  /** The status of success and its description. */
  readonly success: readonly [status: number, description: string]
  /** The body of a successful answer. The types of the client are made from it (`src/client/api-types.ts`). */
  readonly answer?: z.ZodType
}

export interface RouterRoute<Access extends Action | 'open' = Action | 'open'> extends RouteDescription {
  /** The action that the caller's role must allow; `open` needs no token. */
  readonly access: Access
  /**
   * Which workspaces `:id` may name for the token of an agent, checked before the body is read. `own`: only its own
   * workspace. `reachable`: also those it may talk to. Absent: the role alone decides, or the handler checks.
   */
  readonly reach?: 'own' | 'reachable'
  /** False: the rate limit does not count this route. For workers, whose calls are as many as their turns. */
  readonly counted?: false
  readonly body?: RouteBody
  readonly handle: (call: RouteCall, app: AppContext) => Response | Promise<Response>
}

/** An A2A route. The door answers it before the router, because it is the path of every message. */
export interface A2aRoute extends RouteDescription {
  /** `a2a`: each JSON-RPC method has its own rule. */
  readonly access: Action | 'open' | 'a2a'
  readonly body?: Pick<RouteBody<z.ZodType>, 'schema' | 'optional'>
  /** The A2A method that a route of the REST binding calls. */
  readonly a2aMethod?: string
  readonly handle?: undefined
}

/** A JSON body. */
export interface RouteBody<Schema = z.ZodObject> {
  readonly schema: Schema
  /** What the body describes, for error messages: "a token". */
  readonly name: string
  /** An absent body counts as `{}`. */
  readonly optional?: true
  /** Where absent: 1 MiB, or 4 KiB for a route that needs no token. A larger body is refused with `too_large`. */
  readonly bytesMax?: number
  /** The body may also be an array of up to this many such objects; the handler gets the array. */
  readonly batchMax?: number
  /** Members and items in the whole body; default: `JSON_VALUES_MAX`. */
  readonly valuesMax?: number
}

type RouteInput<Path extends string, Access extends Action | 'open', Schema> = Omit<
  RouterRoute<Access>,
  'path' | 'reach' | 'body' | 'handle'
> & {
  readonly path: Path
  readonly reach?: Path extends `${string}/:id${string}` ? RouterRoute['reach'] : never
  readonly body?: RouteBody<Schema>
  readonly handle: (
    call: {
      readonly context: Context<HttpEnv, Path>
      readonly identity: Access extends 'open' ? undefined : Identity
      readonly body: Schema extends z.ZodObject ? z.output<Schema> : undefined
    },
    app: AppContext,
  ) => Response | Promise<Response>
}

/** One request to a route, after the guard. */
export interface RouteCall {
  readonly context: Context<HttpEnv>
  readonly identity: Identity | undefined
  readonly body: unknown
}

/** Node's own request and response, and the id of the request. */
export interface HttpEnv {
  readonly Bindings: HttpBindings & {
    readonly requestId: string
    /** The caller, where the request is answered a second time, with the id in place of a workspace's name. */
    readonly identity?: Identity
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
  readonly lifecycle: WorkspaceLifecycle
  readonly files: WorkspaceFiles
  readonly registry: WorkspaceRegistry
  readonly activity: Activity
  readonly pending: PendingAsks
  readonly rules: Rules
  readonly budgets: Budgets
  readonly needsYou: NeedsYou
  readonly deliveries: Pick<Deliveries, 'resolve'>
  readonly damagedReplies: DamagedReplies
  /** For workspaces that bridges run. */
  readonly bridgeContext: {
    readonly bridges: Bridges
    /** The brief of a lease for this bridge; throws `bad_config`. */
    readonly brief: (lease: Lease, bridge: BriefedBridge) => Promise<Brief>
  }
  readonly conversations: Conversations
  readonly stories: Stories
  readonly usage: UsageReader
  readonly memories: Memories
  readonly schedules: Schedules
  /** Sends the messages of schedules. */
  readonly clockDoor: { wake(): void; run(schedule: Schedule): Promise<string> }
  readonly overview: Overview
  readonly agents: FoundAgents
  readonly chat: ChatRoutesContext
  /** For the API document. */
  readonly knownNames: KnownNames
}

/** What the routes of chat channels need. */
export interface ChatRoutesContext {
  readonly channels: Channels
  readonly pairings: Pairings
  /** Asks the service about the token; throws `bad_config` with one sentence that says what to do. */
  check(kind: string, options: Pick<ChannelOptions, 'token' | 'apiUrl'>, signal: AbortSignal): Promise<ChannelCheck>
  /** A channel or a pairing changed. */
  wake(): void
  /** Keeps a token out of the log. */
  hide(token: string): void
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
  readonly tokens: Tokens
  readonly auth: HttpAuth
  readonly addresses: Addresses
  readonly reach: Reach
  readonly waitingCalls: WaitingCalls
  readonly limits: SseLimits
  readonly metrics: Metrics
  readonly load: () => Promise<LoadReport>
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  /** Why the platform accepts no work right now; undefined when it does. */
  readonly unready: () => Promise<string | undefined>
  /** The API document as JSON, for a caller that reaches the platform at this URL. */
  readonly openApi: (baseUrl: string) => string
}
