/** The MCP server of a workspace. It opens no stream by itself and keeps no session. */
import { z } from 'zod'
import { A2A_BODY_BYTES_MAX } from '../protocol/schemas.ts'
import { contentOf, endpoint } from './endpoint.ts'

/** Revision 2025-03-26 has batches. A call costs as much in a batch, and the rate limit counts the batch once. */
const BATCH_MESSAGES_MAX = 20

const refusedSchema = z.strictObject({
  jsonrpc: z.literal('2.0'),
  error: z.strictObject({ code: z.int(), message: z.string() }),
  id: z.null(),
})

export const callMcp = endpoint('POST /workspaces/{id}/mcp', {
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
  answer: contentOf('text/event-stream'),
})

export const openMcpStream = endpoint('GET /workspaces/{id}/mcp', {
  access: 'mcp.use',
  reach: 'own',
  summary: 'MCP: a stream of messages that no request asked for; this server has none',
  success: [405, 'Always'],
  answer: refusedSchema,
})

export const endMcpSession = endpoint('DELETE /workspaces/{id}/mcp', {
  access: 'mcp.use',
  reach: 'own',
  summary: 'MCP: the end of a session; this server has none',
  success: [405, 'Always'],
  answer: refusedSchema,
})

export const mcpEndpoints = [callMcp, openMcpStream, endMcpSession] as const
