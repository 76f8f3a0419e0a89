/**
 * The `claude-code` backend, the default: the user's own `claude`, kept warm (one process per conversation, see
 * warm-turn.ts) or started once per message (`mode=oneshot`). claude keeps the memory; our session token is its session
 * id. args.ts has the flags, parse.ts reads the output, outcome.ts makes the end.
 */
import { childEnvironment } from '../../process/child-environment.ts'
import type { RunningProcess } from '../../process/processes.ts'
import type {
  Backend,
  BackendContext,
  BackendDefinition,
  BackendEvent,
  Drift,
  McpServer,
  Turn,
  Validation,
} from '../backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import {
  type CliKind,
  type CliSettings,
  cliOptions,
  MCP_CALL_MS_MAX,
  readCliSettings,
} from '../engine/cli/cli-options.ts'
import { cliTurnWork } from '../engine/cli/cli-turn.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { environmentAdditions } from '../engine/environment/agent-environment.ts'
import { type AgentTokenSource, readTokenVariables } from '../engine/environment/agent-token.ts'
import { writeAttachments } from '../engine/files/attachments.ts'
import { createPrivateFolder, type PrivateFolder } from '../engine/files/private-folder.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import { usageEvents } from '../engine/reply-builder.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../engine/turn-engine.ts'
import { createWarmPool, type WarmLaunch, type WarmPool } from '../engine/warm/warm-pool.ts'
import { runWarmTurn } from '../engine/warm/warm-turn.ts'
import { claudeCommand, mcpConfig } from './args.ts'
import { type ClaudeOutcomeFacts, endOf, failureOfRun, ROOT_BYPASS_REMEDY } from './outcome.ts'
import { type ClaudeResult, LINE_BYTES_MAX, parseResult } from './parse.ts'
import { denyBetweenTurns } from './permission.ts'
import { probeClaude } from './probe.ts'
import { type ClaudeAgent, runClaudeTurn } from './warm-turn.ts'

/** Enough: claude saves its session while it works and exits within 50 ms. */
const KILL_GRACE_MS = 1_000

const KIND: CliKind = {
  backend: 'claude-code',
  bin: 'claude',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  maxTurnsDefault: 25,
  cannot: [],
  isolation: {
    stateIn: ['CLAUDE_CONFIG_DIR'],
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  },
}

const AUTH: AgentTokenSource = {
  variable: 'CLAUDE_CODE_OAUTH_TOKEN',
  from: ['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_AUTH_TOKEN'],
  instead: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
}

/** By default claude retries ten times, also after a 401, and is silent for a minute. The runtime does the retries. */
const RETRY_ENVIRONMENT = { CLAUDE_CODE_MAX_RETRIES: '1' }
/** By default claude ends a call of an MCP tool after 300 s without progress. A delegated task may take a day. */
const MCP_ENVIRONMENT = {
  MCP_TOOL_TIMEOUT: String(MCP_CALL_MS_MAX),
  CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT: String(MCP_CALL_MS_MAX),
}
/** Set if Molecule was started from a claude. A child that sees them refuses to start inside another claude. */
const OUTER_CLAUDE_VARIABLES: ReadonlySet<string> = new Set([
  'CLAUDECODE',
  'CLAUDE_CODE_ENTRYPOINT',
  'CLAUDE_CODE_SSE_PORT',
])

export const claudeCode: BackendDefinition = {
  name: KIND.backend,
  summary: 'Claude Code: the claude on this machine, kept warm, with a session for each conversation',
  options: cliOptions(KIND, {
    bin: 'the program (claude)',
    max_turns: 'how many steps a turn may take (25)',
    mode: 'session: one warm process per conversation (default); oneshot: one claude -p per message',
  }),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  tested: '2.1.325',
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createClaude(settings, context),
    ),
}

interface ClaudeContext {
  readonly settings: CliSettings
  readonly context: BackendContext
  readonly warm: WarmPool<ClaudeAgent>
}

function createClaude(settings: CliSettings, context: BackendContext): Backend {
  const { clock } = context
  const isWarm = settings.mode === 'session'
  const warm = createWarmPool<ClaudeAgent>({
    processesMax: settings.warmMax,
    idleMs: settings.warmIdleMs,
    clock,
    turnsPerProcessMax: 1,
  })
  const claude: ClaudeContext = { settings, context, warm }
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: maxTimeMs(settings) })
  return {
    name: KIND.backend,
    mcpToolName: (server, tool) => `mcp__${server}__${tool}`,
    // A one-shot prints nothing before its end, so its timeout limits the whole turn (maxTimeMs).
    ...(isWarm && settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: (signal) => validate(claude, signal),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, claude, stream), signal, turn.onWait),
    probe: (signal) => probe(claude, signal),
    async close() {
      await turns.close()
      await warm.close()
    },
  }
}

function maxTimeMs({ mode, timeoutMs, maxTimeMs: most }: CliSettings): number | undefined {
  const limits = [most, mode === 'oneshot' ? timeoutMs : undefined].filter((limit) => limit !== undefined)
  return limits.length === 0 ? undefined : Math.min(...limits)
}

async function validate({ settings, context }: ClaudeContext, signal: AbortSignal): Promise<Validation> {
  const isRoot = process.getuid?.() === 0
  if (settings.permission === 'bypass' && isRoot && context.environment['IS_SANDBOX'] !== '1') {
    return {
      ok: false,
      problem: `backend "${KIND.backend}" (${settings.bin}): permission is bypass`,
      remedy: ROOT_BYPASS_REMEDY,
    }
  }
  const { processes, environment: env } = context
  const install = 'install it with `npm install -g @anthropic-ai/claude-code`'
  return validateCli(
    { processes, env, backend: KIND.backend, bin: settings.bin, install, isolation: KIND.isolation },
    signal,
  )
}

async function probe(claude: ClaudeContext, signal: AbortSignal): Promise<readonly Drift[]> {
  const { settings, context } = claude
  const environment = withoutOuterClaude(context.environment)
  const probeOptions = { context: { ...context, environment }, settings, isolation: KIND.isolation ?? { stateIn: [] } }
  return probeClaude({ ...probeOptions, facts: factsOf(claude) }, signal)
}

async function runTurn(turn: Turn, claude: ClaudeContext, stream: TurnStream): Promise<EndEvent> {
  const { settings, context } = claude
  const { workingDir, id: turnId } = turn
  const attachments = { workingDir, turnId, outbound: context.outbound, clock: context.clock }
  const { promptLines } = await writeAttachments(turn.request.parts, attachments, stream.signal)
  const prompt = [turn.prompt, ...promptLines].join('\n')
  const plan = await planStart(turn, claude)
  if (settings.mode === 'oneshot') return runOneShot(plan, prompt, stream)
  const { allowedTools } = settings
  const options = { turn, prompt, allowedTools, facts: () => factsOf(claude), clock: context.clock }
  const launch = launchOf(plan)
  return runWarmTurn(
    { warm: claude.warm, clock: context.clock, key: turn.conversationId, launch },
    stream,
    (warmAgent) => runClaudeTurn(warmAgent, options, stream),
  )
}

/** How to start a process for this turn. */
interface StartPlan {
  readonly claude: ClaudeContext
  readonly turn: Turn
  /** The part of its environment that is not inherited. */
  readonly additions: Readonly<Record<string, string>>
  readonly model: string | undefined
  readonly servers: readonly McpServer[]
}

async function planStart(turn: Turn, claude: ClaudeContext): Promise<StartPlan> {
  const { settings, context } = claude
  const known = { ...context.environment, ...turn.env }
  const limits = turn.mcpServers.length === 0 ? [] : Object.entries(MCP_ENVIRONMENT)
  const own = {
    ...Object.fromEntries(limits.filter(([name]) => known[name] === undefined)),
    ...(known['CLAUDE_CODE_MAX_RETRIES'] === undefined && RETRY_ENVIRONMENT),
    ...(await readTokenVariables(AUTH, known, settings.authTokenFile)),
  }
  const { mode, passMeta } = settings
  return {
    claude,
    turn,
    additions: environmentAdditions(turn, { mode, passMeta, own }),
    model: chooseModel(settings.model, turn.model, 'dropped'),
    // The last server of a name wins, so that an owner's server cannot replace one of the platform.
    servers: [...settings.mcpServers, ...turn.mcpServers],
  }
}

const environmentOf = ({ claude, additions }: StartPlan) =>
  withoutOuterClaude(childEnvironment(claude.context.environment, additions))

const withoutOuterClaude = (env: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !OUTER_CLAUDE_VARIABLES.has(name)))

function commandOf({ claude: { settings }, turn, model, servers }: StartPlan, folder: PrivateFolder) {
  const { systemPrompt, sessionToken } = turn
  // If no person is asked, the owner's servers are trusted too: otherwise their tools could never be used.
  const trusted = settings.permission === 'ask' ? turn.mcpServers : servers
  return claudeCommand({
    settings,
    model,
    sessionId: sessionToken,
    systemPromptFile: systemPrompt === '' ? undefined : folder.write('system-prompt.md', systemPrompt),
    mcpConfigFile: servers.length === 0 ? undefined : folder.write('mcp.json', mcpConfig(servers)),
    trustedServers: trusted.map(({ name }) => name),
  })
}

function launchOf(plan: StartPlan): WarmLaunch<ClaudeAgent> {
  const { turn, additions, model, servers } = plan
  return {
    // Without the inherited environment: it is the same for every turn of this backend.
    fingerprint: JSON.stringify([model, servers, additions, turn.workingDir, turn.systemPrompt]),
    // A conversation with a new or another session must not find the memory of the old one.
    fits: (agent) => agent.sessionId === turn.sessionToken,
    start: () => startAgent(plan),
  }
}

function startAgent(plan: StartPlan): ClaudeAgent {
  const { claude, turn } = plan
  const { processes, log } = claude.context
  const folder = createPrivateFolder()
  const running: RunningProcess = processes.start({
    command: commandOf(plan, folder),
    cwd: turn.workingDir,
    env: environmentOf(plan),
    mark: turn.id,
    killGraceMs: KILL_GRACE_MS,
    lineBytesMax: LINE_BYTES_MAX,
    onLine: (line) => (agent.listener === undefined ? denyBetweenTurns(running, line) : agent.listener.onLine(line)),
  })
  const ended = running.ended.then((exit) => {
    folder.remove()
    agent.exit = exit
    agent.listener?.onEnd(exit)
    return exit
  })
  const agent: ClaudeAgent = {
    running: { ...running, ended },
    ended,
    stop: () => running.stop(),
    sessionId: turn.sessionToken,
    listener: undefined,
    exit: undefined,
    hasStarted: false,
    log,
  }
  return agent
}

async function runOneShot(plan: StartPlan, prompt: string, stream: TurnStream): Promise<EndEvent> {
  const { claude, turn } = plan
  const env = environmentOf(plan)
  const folder = createPrivateFolder()
  try {
    const work = cliTurnWork(claude.context.processes, {
      run: { command: commandOf(plan, folder), cwd: turn.workingDir, env, mark: turn.id, killGraceMs: KILL_GRACE_MS },
      input: prompt,
      read: (line) => resultEvents(parseResult(line), plan),
      conclude: (run, stdout) => ({ type: 'failed', error: failureOfRun(run, stdout, factsOf(claude)) }),
    })
    return await work(stream)
  } finally {
    folder.remove()
  }
}

/** The events of a one-shot: it prints one result at its end. */
function resultEvents(result: ClaudeResult | undefined, { claude, turn }: StartPlan): readonly BackendEvent[] {
  if (result === undefined) return []
  // The first turn costs as much as the session. For a later turn claude reports only the sum, so its cost is unknown.
  const costUsd = result.costUsd ?? (turn.sessionToken === undefined ? result.sessionCostUsd : undefined)
  const session: BackendEvent = { type: 'session', token: result.sessionId }
  return [
    ...(result.sessionId === '' ? [] : [session]),
    ...usageEvents({ inputTokens: result.inputTokens, outputTokens: result.outputTokens, costUsd }),
    endOf(result, factsOf(claude)),
  ]
}

function factsOf({ settings, context }: ClaudeContext): ClaudeOutcomeFacts {
  const { bin: command, timeout, maxTurns } = settings
  return { command, timeout, maxTurns, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() }
}
