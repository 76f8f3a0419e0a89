/**
 * The MCP server of a workspace. The route checks the caller and reads the body; `doors/mcp` answers. The server opens no
 * stream by itself and keeps no session, so the other methods of the protocol are answered with 405.
 */
import type { Context } from 'hono'
import { callMcp, endMcpSession, openMcpStream } from '../../../api/mcp.ts'
import { toMoleculeError } from '../../../errors.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { taskViewsOf } from '../server/auth.ts'
import { logFailure, publicError } from '../server/errors.ts'
import { type AppContext, type HttpEnv, serve } from './route.ts'

export const mcpRoutes = [
  serve(callMcp, ({ params, ...call }, app) => answer({ ...call, workspaceId: params.id }, app)),
  serve(openMcpStream, ({ context }) => refuseSession(context)),
  serve(endMcpSession, ({ context }) => refuseSession(context)),
]

function refuseSession(context: Context<HttpEnv>) {
  context.header('Allow', 'POST')
  const error = { code: -32_000, message: 'Method not allowed: this server keeps no session; use POST.' }
  return { jsonrpc: '2.0', error, id: null } as const
}

interface McpRouteCall {
  readonly context: Context<HttpEnv>
  readonly workspaceId: string
  readonly identity: Identity
  readonly body: unknown
}

async function answer({ context, workspaceId, identity, body }: McpRouteCall, app: AppContext): Promise<Response> {
  const { incoming: request, outgoing: response, requestId } = context.env
  app.waitingCalls.countStream(response, identity)
  return await app.mcp({
    workspaceId,
    identity,
    body,
    response,
    request: context.req.raw,
    taskViews: taskViewsOf(identity),
    bytes: Number(request.headers['content-length'] ?? 0),
    wait: (wait) => app.waitingCalls.run({ response, identity }, wait),
    refuse(thrown) {
      const error = toMoleculeError(thrown)
      logFailure(app.log, error, { request, requestId })
      return publicError(error, requestId).message
    },
  })
}
