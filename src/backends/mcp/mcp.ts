/**
 * The `mcp` backend: each message is one call of one tool of an MCP server. The text is an argument, the result is the
 * reply. The server is a program of this machine, kept warm per conversation, or a URL (Streamable HTTP), which may be
 * private because the admin gave it. Invariant: when a cancelled turn has ended, no program works on its call. MCP does
 * not confirm a cancel, so the program is ended.
 */
import type { Client } from '@modelcontextprotocol/client'
import { MoleculeError } from '../../errors.ts'
import { childEnvironment } from '../../process/child-environment.ts'
import type { SpawnOptions } from '../../process/processes.ts'
import { joinText } from '../../protocol/request.ts'
import { traceFromVariables } from '../../protocol/trace-context.ts'
import type { Backend, BackendContext, BackendDefinition, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS } from '../endpoint.ts'
import { environmentAdditions } from '../engine/environment/agent-environment.ts'
import { shellFor } from '../engine/shell.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../engine/turn-engine.ts'
import { createWarmPool, type WarmPool } from '../engine/warm/warm-pool.ts'
import { runWarmTurn } from '../engine/warm/warm-turn.ts'
import { createMcpHttpConnection, type McpHttpConnection } from './http-connection.ts'
import { failureOf } from './outcome.ts'
import { parseToolResult } from './parse.ts'
import { type McpServerProcess, startMcpServerProcess } from './server-process.ts'
import { type McpSettings, readMcpSettings } from './settings.ts'
import { type McpTool, toolArguments } from './tool-arguments.ts'

/** The library's own timeout, as long as possible: the turn has its own time limits. */
const LIBRARY_MS_MAX = 2 ** 31 - 1
const VALIDATE_MS_MAX = 9_000

export const mcp: BackendDefinition = {
  name: 'mcp',
  summary: 'each message is one call of one tool of an MCP server',
  options: {
    tool: 'the name of the tool; required',
    command: 'the server as a command, run by /bin/sh -c; set this or url',
    url: 'the server as a URL (Streamable HTTP); set this or command',
    argument: 'the argument that gets the text (the first required string argument of the tool, else its first)',
    arguments: 'the arguments as a JSON object; {{text}} is replaced by the text',
    ...ENDPOINT_OPTIONS,
    max_time: 'time limit of a call, or none (none)',
    warm_max: 'how many programs run at the same time (4)',
    warm_idle: 'a program without a message for this long is ended (10m)',
  },
  reportsTools: false,
  isFree: true,
  ignoresPrompt: true,
  create: (options, context) => createMcp(readMcpSettings(options, context.environment), context),
}

interface McpContext extends BackendContext {
  readonly settings: McpSettings
  readonly warm: WarmPool<McpServerProcess>
  readonly http: McpHttpConnection | undefined
}

function createMcp(settings: McpSettings, context: BackendContext): Backend {
  const { clock } = context
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  const { warmMax: processesMax, warmIdleMs: idleMs, endpoint } = settings
  const warm = createWarmPool<McpServerProcess>({ processesMax, idleMs, clock, turnsPerProcessMax: 1 })
  const http = endpoint === undefined ? undefined : createMcpHttpConnection(endpoint)
  const mcpContext: McpContext = { ...context, settings, warm, http }
  return {
    name: mcp.name,
    stallMs: settings.stallMs,
    validate: (signal) => validate(mcpContext, AbortSignal.any([signal, AbortSignal.timeout(VALIDATE_MS_MAX)])),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, mcpContext, stream), signal, turn.onWait),
    async close() {
      await turns.close()
      await warm.close()
      await http?.close()
    },
  }
}

function runTurn(turn: Turn, mcpContext: McpContext, stream: TurnStream): Promise<EndEvent> {
  const { http } = mcpContext
  return http === undefined
    ? callProgram(turn, mcpContext, stream)
    : callOverHttp(turn, { ...mcpContext, http }, stream)
}

async function callOverHttp(
  turn: Turn,
  { settings, http }: McpContext & { readonly http: McpHttpConnection },
  stream: TurnStream,
): Promise<EndEvent> {
  try {
    return await callTool(await http.connect(stream.signal), { turn, settings }, stream)
  } catch (thrown) {
    const error = http.tooLargeError() ?? failureOf(thrown)
    // The connection may be broken, so the next message opens a new one.
    if (error.retryable || error.code === 'too_large') await http.reset()
    return { type: 'failed', error }
  }
}

function callProgram(turn: Turn, mcpContext: McpContext, stream: TurnStream): Promise<EndEvent> {
  const { warm, clock, settings } = mcpContext
  const additions = environmentAdditions(turn, { mode: 'session', passMeta: true, own: {} })
  const launch = {
    // Without the inherited environment: it is the same for every turn of this backend.
    fingerprint: JSON.stringify([settings.command, turn.workingDir, additions]),
    start: () => {
      const env = childEnvironment(mcpContext.environment, additions)
      return startServer({ cwd: turn.workingDir, env, mark: turn.id }, mcpContext)
    },
  }
  return runWarmTurn({ warm, clock, key: turn.conversationId, launch }, stream, async ({ agent }) => {
    try {
      const end = await callTool(await agent.connect(stream.signal), { turn, settings }, stream)
      return { end, isUsable: true }
    } catch (thrown) {
      const error = agent.death() ?? failureOf(thrown)
      // A refused tool is no fault of its server. A cancelled call may still run, so its server is ended.
      return { end: { type: 'failed', error }, isUsable: !stream.signal.aborted && !error.retryable }
    }
  })
}

function startServer(
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'mark'>,
  { processes, settings, environment, clock, log }: McpContext,
): McpServerProcess {
  const line = settings.command ?? ''
  const command = shellFor(process.platform, environment).command(line)
  return startMcpServerProcess({ processes, spawning: { ...options, command }, name: line, clock, log })
}

async function callTool(
  client: Client,
  { turn, settings }: { readonly turn: Turn; readonly settings: McpSettings },
  stream: TurnStream,
): Promise<EndEvent> {
  const { emit, signal } = stream
  const tool = settings.needsSchema ? await findTool(client, settings.tool, signal) : undefined
  emit({ type: 'activity' })
  const trace = traceFromVariables(turn.env)
  const result = await client.callTool(
    {
      name: settings.tool,
      arguments: toolArguments(joinText(turn.request.parts), settings, tool),
      ...(trace !== undefined && { _meta: { ...trace } }),
    },
    {
      signal,
      timeout: LIBRARY_MS_MAX,
      onprogress: ({ progress, total, message }) => {
        const count = total === undefined ? `${progress}` : `${progress} of ${total}`
        emit({ type: 'status', text: message === undefined ? count : `${message} (${count})` })
      },
    },
  )
  return parseToolResult(result)
}

async function findTool(client: Client, name: string, signal: AbortSignal): Promise<McpTool> {
  const { tools } = await client.listTools(undefined, { signal, timeout: LIBRARY_MS_MAX })
  const tool = tools.find((one) => one.name === name)
  if (tool !== undefined) return tool as McpTool
  const known = tools.map((one) => one.name).sort()
  const available = known.length === 0 ? 'it has none' : `it has: ${known.join(', ')}`
  throw new MoleculeError('bad_config', `the MCP server has no tool "${name}"; ${available}`, { details: { known } })
}

/** Checks that the server answers and has the tool, without a call of it. */
async function validate(mcpContext: McpContext, signal: AbortSignal): Promise<Validation> {
  const { settings, http, environment } = mcpContext
  const env = childEnvironment(environment, {})
  const program =
    http === undefined ? startServer({ cwd: '/', env, mark: `validate-${crypto.randomUUID()}` }, mcpContext) : undefined
  try {
    const client = await (program ?? (http as McpHttpConnection)).connect(signal)
    toolArguments('', settings, await findTool(client, settings.tool, signal))
    const version = client.getServerVersion()
    return { ok: true, ...(version !== undefined && { version: `${version.name} ${version.version}` }) }
  } catch (thrown) {
    const error = program?.death() ?? failureOf(thrown)
    return {
      ok: false,
      problem: error.message,
      remedy: 'check the command or url, its credentials, and the tool',
    }
  } finally {
    await program?.stop()
  }
}
