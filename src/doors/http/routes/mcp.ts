/**
 * The MCP server of a workspace. The route checks the caller and reads the body; `doors/mcp` answers. The server opens no
 * stream by itself and keeps no session, so the other methods of the protocol are answered with 405.
 */
import type { Context } from 'hono'
import { z } from 'zod'
import { toMoleculeError } from '../../../errors.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import { taskViewsOf } from '../server/auth.ts'
import { A2A_BODY_BYTES_MAX } from '../server/body.ts'
import { logFailure, publicError } from '../server/errors.ts'
import { type AppContext, type HttpEnv, route } from './route.ts'

const PATH = '/workspaces/:id/mcp'

/** Revision 2025-03-26 has batches. A call costs as much in a batch, and the rate limit counts the batch once. */
const BATCH_MESSAGES_MAX = 20

export const mcpRoutes = [
  route({
    method: 'post',
    path: PATH,
    access: 'mcp.use',
    reach: 'own',
    body: {
      schema: z.looseObject({}),
      name: 'a JSON-RPC message',
      bytesMax: A2A_BODY_BYTES_MAX,
      batchMax: BATCH_MESSAGES_MAX,
    },
    summary: 'MCP over Streamable HTTP: the teamwork tools of the workspace',
    success: [200, 'A stream of JSON-RPC messages'],
    handle: ({ context, identity, body }, app) => answer({ context, identity, body }, app),
  }),
  route({ ...noSession('a stream of messages that no request asked for'), method: 'get' }),
  route({ ...noSession('the end of a session'), method: 'delete' }),
]

function noSession(what: string) {
  return {
    path: PATH,
    access: 'mcp.use',
    reach: 'own',
    summary: `MCP: ${what}; this server has none`,
    success: [405, 'Always'],
    handle: ({ context }: { readonly context: Context<HttpEnv> }) => {
      const error = { code: -32_000, message: 'Method not allowed: this server keeps no session; use POST.' }
      return context.json({ jsonrpc: '2.0', error, id: null }, 405, { Allow: 'POST' })
    },
  } as const
}

interface McpRouteCall {
  readonly context: Context<HttpEnv, typeof PATH>
  readonly identity: Identity
  readonly body: unknown
}

async function answer({ context, identity, body }: McpRouteCall, app: AppContext): Promise<Response> {
  const { incoming: request, outgoing: response, requestId } = context.env
  app.waitingCalls.countStream(response, identity)
  return await app.mcp({
    workspaceId: context.req.param('id'),
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
