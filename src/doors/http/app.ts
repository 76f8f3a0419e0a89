/** The list of all routes, and the app that serves them: guard, body, handler, and the answer to an error. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Context, Hono } from 'hono'
import type { EndpointBody } from '../../api/endpoint.ts'
import { requireAccess } from '../../api/who-may.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Identity } from '../../workspaces/tokens.ts'
import { describeApi, type OpenApiDocument } from './openapi/openapi.ts'
import { a2aRoutes } from './routes/a2a.ts'
import { activityRoutes } from './routes/activity.ts'
import { bridgeRoutes } from './routes/bridges.ts'
import { browserRoutes } from './routes/browser.ts'
import { channelRoutes } from './routes/channels.ts'
import { conversationRoutes } from './routes/conversations.ts'
import { fileRoutes } from './routes/files.ts'
import { mcpRoutes } from './routes/mcp.ts'
import { memoryRoutes } from './routes/memories.ts'
import { needRoutes } from './routes/needs.ts'
import { platformRoutes } from './routes/platform.ts'
import { registryRoutes } from './routes/registry.ts'
import type { AppContext, HttpEnv, Route, RouteCall, RouterRoute } from './routes/route.ts'
import { ruleRoutes } from './routes/rules.ts'
import { scheduleRoutes } from './routes/schedules.ts'
import { taskRoutes } from './routes/tasks.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { usageRoutes } from './routes/usage.ts'
import { workspaceRoutes } from './routes/workspaces.ts'
import { writeAnswer } from './server/answer.ts'
import {
  BODY_BYTES_MAX,
  letOthersRun,
  parseJson,
  readBody,
  SMALL_BODY_BYTES_MAX,
  STRANGER_BODY_BYTES_MAX,
} from './server/body.ts'
import { errorAnswer, logFailure } from './server/errors.ts'
import { readQuery } from './server/query.ts'
import { findWorkspaceId, requireOwnWorkspace } from './server/reach.ts'
import { validateBody } from './server/validate-body.ts'

/** Every route of the HTTP door, in the order in which the router tries them. */
export const ROUTES: readonly Route[] = [
  ...platformRoutes,
  ...browserRoutes,
  ...workspaceRoutes,
  ...a2aRoutes,
  ...fileRoutes,
  ...registryRoutes,
  ...bridgeRoutes,
  ...activityRoutes,
  ...conversationRoutes,
  ...needRoutes,
  ...ruleRoutes,
  ...taskRoutes,
  ...usageRoutes,
  ...memoryRoutes,
  ...mcpRoutes,
  ...scheduleRoutes,
  ...channelRoutes,
  ...tokenRoutes,
]

export function createApp(options: Omit<AppContext, 'openApi'>): Hono<HttpEnv> {
  let document: OpenApiDocument | undefined
  const openApi = (url: string) => {
    document ??= describeApi(ROUTES, options.version, options.knownNames)
    return JSON.stringify({ ...document, servers: [{ url }] })
  }
  const appContext: AppContext = { ...options, openApi }
  // A slash at the end of a path makes no difference.
  const app = new Hono<HttpEnv>({ strict: false })
  for (const route of ROUTES) if (route.handle !== undefined) addRoute(app, route, appContext)
  const refuse = (thrown: unknown, context: Context<HttpEnv>) => {
    const { incoming: request, outgoing: response, requestId } = context.env
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, { request, requestId })
    writeAnswer({ request, response, requestId }, errorAnswer(error, requestId))
    return RESPONSE_ALREADY_SENT
  }
  app.notFound((context) => refuse(noRoute(context.req.method, context.req.path), context))
  app.onError(refuse)
  return app
}

function addRoute(app: Hono<HttpEnv>, route: RouterRoute, appContext: AppContext): void {
  const namesWorkspace = WORKSPACE_PATH.test(route.path)
  app.on(route.method.toUpperCase(), route.path, async (context) => {
    const identity = await admitCaller(route, context, appContext)
    const given: Readonly<Record<string, string>> = context.req.param()
    // A URL may name a workspace by its name; from here on it is the id.
    const params =
      identity === undefined || !namesWorkspace
        ? given
        : { ...given, id: await findWorkspaceId(identity, given['id'] ?? '', appContext) }
    await requireReach(route, { params, identity }, appContext)
    const query = route.query && readQuery(route.query, context.req.query())
    const body = route.body && (await readRouteBody(route.body, { route, context, identity }, appContext))
    const answer = await route.handle({ context, params, query, identity, body }, appContext)
    if (answer instanceof Response) return answer
    return answer === undefined ? context.body(null) : context.json(answer)
  })
}

/** The guard. Everything that it refuses is refused before the body is read. */
async function admitCaller(
  { access, counted }: RouterRoute,
  { env }: Context<HttpEnv>,
  app: AppContext,
): Promise<Identity | undefined> {
  if (access === 'open') return undefined
  const identity = await app.auth.identify(env.incoming, { counted: counted !== false })
  requireAccess(identity, access)
  return identity
}

/** Paths whose `:id` is a workspace. */
const WORKSPACE_PATH = /^\/(?:workspaces|registry)\/.*:id/

/** The second part of the guard, once the workspace is known by its id. */
async function requireReach(
  { access, reach }: RouterRoute,
  { params, identity }: Pick<RouteCall, 'params' | 'identity'>,
  app: AppContext,
): Promise<void> {
  if (identity === undefined || access === 'open') return
  const workspaceId = params['id'] ?? ''
  if (reach === 'own') requireOwnWorkspace(identity, workspaceId)
  if (reach === 'reachable') await app.reach(identity, workspaceId, access)
}

async function readRouteBody(
  { schema, name, optional, bytesMax, valuesMax, batchMax }: EndpointBody,
  { route, context: { env }, identity }: Pick<RouteCall, 'context' | 'identity'> & { readonly route: RouterRoute },
  { auth }: AppContext,
): Promise<unknown> {
  const open = auth.openBody(identity, env.incoming, { counted: route.counted !== false })
  const limit = bytesMax ?? (route.access === 'open' ? STRANGER_BODY_BYTES_MAX : BODY_BYTES_MAX)
  const bytes = await readBody(env.incoming, limit, open)
  if (optional && bytes.length === 0) return validateBody(schema, {}, name)
  const json = await parseJson(bytes, valuesMax)
  if (bytes.length > SMALL_BODY_BYTES_MAX) await letOthersRun()
  if (batchMax === undefined || !Array.isArray(json)) return validateBody(schema, json, name)
  if (json.length <= batchMax) return json.map((each) => validateBody(schema, each, name))
  throw new MoleculeError('invalid_request', `a batch has at most ${batchMax} messages`)
}

function noRoute(method: string, path: string): MoleculeError {
  return new MoleculeError('not_found', `there is nothing at ${method} ${path}`)
}
