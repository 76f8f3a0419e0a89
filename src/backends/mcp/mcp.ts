/**
 * The `mcp` backend: each message is one call of one named tool of an MCP server, its text one of the arguments, its
 * result the reply. The server is a program of this machine, kept warm, one a conversation, or an address (Streamable
 * HTTP), which is the admin's own word and may be private. Invariant: when a cancelled turn has ended, no program works
 * on its call; MCP knows no answer to a cancel, so that program is ended.
 */
import type { Client } from '@modelcontextprotocol/client'
import { MoleculeError } from '../../errors.ts'
import { childEnvironment } from '../../process/environment.ts'
import type { Backend, BackendContext, BackendDefinition, Turn, Validation } from '../backend.ts'
import { ENDPOINT_OPTIONS } from '../endpoint.ts'
import { additionsOf } from '../engine/agent-environment.ts'
import { createTurns, type EndEvent, OUTPUT_BYTES_MAX, type Telling } from '../engine/turns.ts'
import { createWarm, type Warm } from '../engine/warm.ts'
import { warmTurn } from '../engine/warm-turn.ts'
import { shellFor } from '../exec/shell.ts'
import { argumentsFor, type Tool } from './arguments.ts'
import { failureOf } from './failure.ts'
import { createHttpServer, type HttpServer } from './http-server.ts'
import { type ProgramServer, startProgramServer } from './program-server.ts'
import { readResult } from './result.ts'
import { readSettings, type Settings } from './settings.ts'

/** The turn has clocks of its own; the library's must not be the shorter one. */
const LIBRARY_MS_MAX = 2 ** 31 - 1
const VALIDATE_MS_MAX = 9_000

export const mcp: BackendDefinition = {
  name: 'mcp',
  summary: 'each message is one call of one tool of an MCP server',
  options: {
    tool: 'the name of the tool; required',
    command: 'the server as a command, run by /bin/sh -c (cmd.exe /c on Windows); this or url',
    url: 'the server as an address (Streamable HTTP); this or command',
    argument: 'which argument gets the text (the first required text of the tool, or its first)',
    arguments: 'the arguments as a JSON object, in which {{text}} stands for the text',
    ...ENDPOINT_OPTIONS,
    max_time: 'how long a call may take in all, or none (none)',
    warm_max: 'how many programs are kept at once (4)',
    warm_idle: 'after how long without a message one is ended (10m)',
  },
  reportsTools: false,
  isFree: true,
  create: (options, context) => createMcp(readSettings(options, context.environment), context),
}

interface House extends BackendContext {
  readonly settings: Settings
  readonly warm: Warm<ProgramServer>
  readonly http: HttpServer | undefined
}

function createMcp(settings: Settings, context: BackendContext): Backend {
  const { clock } = context
  const turns = createTurns({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  const { warmMax: max, warmIdleMs: idleMs, endpoint } = settings
  const warm = createWarm<ProgramServer>({ max, idleMs, clock, sessionsMax: 1 })
  const http = endpoint === undefined ? undefined : createHttpServer(endpoint)
  const house: House = { ...context, settings, warm, http }
  return {
    name: mcp.name,
    stallMs: settings.stallMs,
    validate: (signal) => validate(house, AbortSignal.any([signal, AbortSignal.timeout(VALIDATE_MS_MAX)])),
    run: (turn, signal) => turns.run((telling) => perform(turn, house, telling), signal),
    async close() {
      await turns.close()
      await warm.close()
      await http?.close()
    },
  }
}

function perform(turn: Turn, house: House, telling: Telling): Promise<EndEvent> {
  return house.http === undefined ? askProgram(turn, house, telling) : askHttp(turn, house, telling)
}

async function askHttp(turn: Turn, { settings, http }: House, telling: Telling): Promise<EndEvent> {
  const server = http as HttpServer
  try {
    return await call(await server.connect(telling.signal), { turn, settings }, telling)
  } catch (thrown) {
    const error = server.flood() ?? failureOf(thrown)
    // Whatever it is about, the next message begins with a connection of its own.
    if (error.retryable || error.code === 'too_large') await server.reset()
    return { type: 'failed', error }
  }
}

function askProgram(turn: Turn, house: House, telling: Telling): Promise<EndEvent> {
  const { warm, clock, settings } = house
  const additions = additionsOf(turn, { mode: 'session', passMeta: true, own: {} })
  const launch = {
    // What is inherited is the same for every turn of this backend.
    fingerprint: JSON.stringify([settings.command, turn.workingDir, additions]),
    start: () => {
      const env = childEnvironment(house.environment, additions)
      return startServer({ cwd: turn.workingDir, env, mark: turn.id }, house)
    },
  }
  return warmTurn({ warm, clock, key: turn.conversationId, launch }, telling, async ({ agent }) => {
    try {
      const end = await call(await agent.connect(telling.signal), { turn, settings }, telling)
      return { end, isUsable: true }
    } catch (thrown) {
      const error = agent.death() ?? failureOf(thrown)
      // A tool that is refused says nothing against its server; a call that was cancelled may still be going on.
      return { end: { type: 'failed', error }, isUsable: !telling.signal.aborted && !error.retryable }
    }
  })
}

interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly mark: string
}

function startServer(place: Place, { processes, settings, environment, clock, log }: House): ProgramServer {
  const line = settings.command ?? ''
  const command = shellFor(process.platform, environment).command(line)
  return startProgramServer({ processes, spawning: { ...place, command }, name: line, clock, log })
}

interface Asking {
  readonly turn: Turn
  readonly settings: Settings
}

async function call(client: Client, { turn, settings }: Asking, telling: Telling): Promise<EndEvent> {
  const { emit, signal } = telling
  const tool = settings.needsSchema ? await findTool(client, settings.tool, signal) : undefined
  emit({ type: 'activity' })
  const result = await client.callTool(
    { name: settings.tool, arguments: argumentsFor(turn.prompt, settings, tool) },
    {
      signal,
      timeout: LIBRARY_MS_MAX,
      onprogress: ({ progress, total, message }) => {
        const share = total === undefined ? `${progress}` : `${progress} of ${total}`
        emit({ type: 'status', text: message === undefined ? share : `${message} (${share})` })
      },
    },
  )
  return readResult(result)
}

async function findTool(client: Client, name: string, signal: AbortSignal): Promise<Tool> {
  const { tools } = await client.listTools(undefined, { signal, timeout: LIBRARY_MS_MAX })
  const tool = tools.find((one) => one.name === name)
  if (tool !== undefined) return tool as Tool
  const known = tools.map((one) => one.name).sort()
  const words = known.length === 0 ? 'it has none' : `it has: ${known.join(', ')}`
  throw new MoleculeError('bad_config', `the MCP server has no tool "${name}"; ${words}`, { details: { known } })
}

/** Is the server there, and has it that tool: asked without calling it. */
async function validate(house: House, signal: AbortSignal): Promise<Validation> {
  const { settings, http, environment } = house
  const env = childEnvironment(environment, {})
  const program =
    http === undefined ? startServer({ cwd: '/', env, mark: `validate-${crypto.randomUUID()}` }, house) : undefined
  try {
    const client = await (program ?? (http as HttpServer)).connect(signal)
    argumentsFor('', settings, await findTool(client, settings.tool, signal))
    const version = client.getServerVersion()
    return { ok: true, ...(version !== undefined && { version: `${version.name} ${version.version}` }) }
  } catch (thrown) {
    const error = program?.death() ?? failureOf(thrown)
    return {
      ok: false,
      problem: `${error.message}.`,
      remedy: 'Check the command or url, its credentials, and the tool.',
    }
  } finally {
    await program?.stop()
  }
}
