/** Everything of the HTTP door that is not A2A: the routes put together, and how their errors are answered. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Reception } from '../../../inbox/inbox.ts'
import type { DeadLetters, PendingAsks } from '../../../inbox/owners.ts'
import type { Activity, LoadReport, Stories, UsageReader } from '../../../inbox/readers.ts'
import type { Log } from '../../../log.ts'
import type { Metrics } from '../../../metrics.ts'
import type { WorkspaceRegistry } from '../../../workspaces/registry.ts'
import type { Tokens } from '../../../workspaces/tokens.ts'
import type { WorkspaceLifecycle, Workspaces } from '../../../workspaces/workspace.ts'
import type { WorkspaceFiles } from '../../../workspaces/workspace-files.ts'
import { type HealthRouteOptions, healthRoutes } from '../health.ts'
import { writeAnswer } from '../server/answer.ts'
import type { HttpAuth } from '../server/auth.ts'
import { errorAnswer, logFailure } from '../server/errors.ts'
import type { HttpEnv } from '../server/guard.ts'
import type { Reach } from '../server/reach.ts'
import { socketRoutes } from '../socket/sockets.ts'
import { aboutRoutes } from './about.ts'
import { activityRoutes } from './activity.ts'
import { artifactRoutes } from './artifacts.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { type EventRouteOptions, eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { type BridgeContext, inboxRoutes } from './inbox.ts'
import { lifecycleRoutes } from './lifecycle.ts'
import { loginRoutes } from './login.ts'
import { metricsRoutes } from './metrics.ts'
import { pendingAskRoutes } from './pending-asks.ts'
import { registryRoutes } from './registry.ts'
import { statusRoutes } from './status.ts'
import { taskRoutes } from './tasks.ts'
import { tokenRoutes } from './tokens.ts'
import { usageRoutes } from './usage.ts'
import { workspaceRoutes } from './workspaces.ts'

/** What the routes of workspaces need besides looking them up. */
export interface WorkspaceRoutesContext {
  readonly lifecycle: WorkspaceLifecycle
  readonly files: WorkspaceFiles
  readonly registry: WorkspaceRegistry
  readonly activity: Activity
  readonly pending: PendingAsks
  /** For workspaces that bridges run. */
  readonly bridgeContext: BridgeContext
  readonly stories: Stories
  readonly usage: UsageReader
}

export interface AppOptions extends HealthRouteOptions, WorkspaceRoutesContext, EventRouteOptions {
  readonly reception: Reception
  readonly deadLetters: DeadLetters
  readonly workspaces: Workspaces
  readonly tokens: Tokens
  readonly auth: HttpAuth
  readonly reach: Reach
  readonly metrics: Metrics
  readonly load: () => Promise<LoadReport>
  readonly log: Log
}

export function createApp(options: AppOptions): Hono<HttpEnv> {
  const { tokens, auth, log } = options
  const app = new Hono<HttpEnv>()
  app.route('/', healthRoutes(options))
  app.route('/', aboutRoutes(options))
  app.route('/', loginRoutes(tokens, auth))
  app.route('/', workspaceRoutes(options))
  app.route('/', lifecycleRoutes(options))
  app.route('/', fileRoutes(options))
  app.route('/', registryRoutes(options))
  app.route('/', inboxRoutes(options))
  app.route('/', artifactRoutes(options))
  app.route('/', activityRoutes(options))
  app.route('/', eventRoutes(options))
  app.route('/', socketRoutes(options))
  app.route('/', deadLetterRoutes(options))
  app.route('/', pendingAskRoutes(options))
  app.route('/', taskRoutes(options))
  app.route('/', statusRoutes(options))
  app.route('/', usageRoutes(options))
  app.route('/', tokenRoutes(options))
  app.route('/', metricsRoutes(options))
  const refuse = (thrown: unknown, context: Context<HttpEnv>) => {
    const { incoming: request, outgoing: response, requestId } = context.env
    const error = toMoleculeError(thrown)
    logFailure(log, error, { request, response, requestId })
    writeAnswer({ request, response, requestId }, errorAnswer(error, requestId))
    return RESPONSE_ALREADY_SENT
  }
  app.notFound((context) => refuse(noRoute(context.req.method, context.req.path), context))
  app.onError(refuse)
  return app
}

function noRoute(method: string, path: string): MoleculeError {
  return new MoleculeError('not_found', `there is nothing at ${method} ${path}`)
}
