/**
 * The MCP server of a workspace, over Streamable HTTP. It keeps no session: each request builds a server with the tools
 * below, so a client that still uses a session of an earlier platform is answered too. The cancel of a call does not end
 * the call, which only learns that its answer is not read. Every call is answered as a stream with its headers at once
 * and a comment every 15 s, because clients end a silent call.
 */
import type { McpHttpHandler, McpServer } from '@modelcontextprotocol/server'
import { requireAccess } from '../../api/who-may.ts'
import { readTraceContext } from '../../protocol/trace-context.ts'
import type { AnswerMcp, McpCall } from '../mcp-calls.ts'
import { delegationTools } from './delegation-tools.ts'
import { createGivenUpCalls, type GivenUpCalls } from './given-up-calls.ts'
import { memoryTools } from './memory-tools.ts'
import { peopleTools } from './people-tools.ts'
import type { McpContext, Tool, ToolResult } from './tool.ts'
import { workspaceTools } from './workspace-tools.ts'

export const TOOLS: readonly Tool[] = [...workspaceTools, ...peopleTools, ...delegationTools, ...memoryTools]

const KEEP_ALIVE_MS = 15_000
/** claude cuts a result at 49 KB by default; this raises its limit for the tool. */
const CLAUDE_SIZE_META = { 'anthropic/maxResultSizeChars': 500_000 }

const INSTRUCTIONS = `You are one of several workspaces of Molecule. These tools reach the others.
An answer that begins with [A2A_ERROR] is a failure of another workspace. Never pass it on unchanged: ask another one, do the work yourself, or say which one was unavailable and give your own best answer.`

/** Loads the library at the first call: most platforms never need it. */
export function createMcp(context: McpContext): AnswerMcp {
  let handler: Promise<McpHttpHandler> | undefined
  const givenUp = createGivenUpCalls()
  return async (call) => {
    handler ??= createHandler(context, givenUp)
    givenUp.note(call)
    const { identity, request, body } = call
    const authInfo = { token: '', clientId: identity.tokenId, scopes: [], extra: { call } }
    return (await handler).fetch(request, { authInfo, parsedBody: body })
  }
}

async function createHandler(context: McpContext, givenUp: GivenUpCalls): Promise<McpHttpHandler> {
  const library = await import('@modelcontextprotocol/server')
  return library.createMcpHandler(
    ({ authInfo }) => {
      const server = new library.McpServer(
        { name: 'molecule', version: context.version },
        { instructions: INSTRUCTIONS },
      )
      addTools(server, { ...context, ...(authInfo?.extra?.['call'] as McpCall) }, givenUp)
      return server
    },
    { responseMode: 'sse', keepAliveMs: KEEP_ALIVE_MS },
  )
}

function addTools(server: McpServer, call: McpContext & McpCall, givenUp: GivenUpCalls): void {
  for (const { name, access, description, input, readOnly, run } of TOOLS) {
    const config = {
      description,
      inputSchema: input,
      _meta: CLAUDE_SIZE_META,
      annotations: { readOnlyHint: readOnly, destructiveHint: name === 'forget_memory', openWorldHint: false },
    }
    server.registerTool(name, config, async (given, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      const trace = readTraceContext(mcpReq._meta ?? {}) ?? readTraceContext(headersOf(call.request))
      let progress = 0
      const report = (message: string) => {
        if (progressToken === undefined) return
        const params = { progressToken, progress: ++progress, message }
        // The client may have gone; its wait ends by its own signal.
        mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
      }
      const { text, isError = false } = await givenUp.run({ ...call, id: mcpReq.id }, (isGivenUp) =>
        runTool(() => {
          requireAccess(call.identity, access)
          return run(given as never, { ...call, report, isGivenUp, trace })
        }, call),
      )
      return { content: [{ type: 'text' as const, text }], ...(isError && { isError }) }
    })
  }
}

const headersOf = ({ headers }: McpCall['request']) => ({
  traceparent: headers.get('traceparent'),
  tracestate: headers.get('tracestate'),
})

async function runTool(run: () => Promise<ToolResult>, call: Pick<McpCall, 'refuse'>): Promise<ToolResult> {
  try {
    return await run()
  } catch (thrown) {
    return { text: call.refuse(thrown), isError: true }
  }
}
