/** How to start claude for a turn: its model, its session, its MCP servers, its environment, its command line. */
import { childEnvironment } from '../../process/child-environment.ts'
import type { BackendContext, McpServer, Turn } from '../backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliSettings, MCP_CALL_MS_MAX } from '../engine/cli/cli-options.ts'
import { environmentAdditions } from '../engine/environment/agent-environment.ts'
import { type AgentTokenSource, readTokenVariables } from '../engine/environment/agent-token.ts'
import type { PrivateFolder } from '../engine/files/private-folder.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import type { WarmPool } from '../engine/warm/warm-pool.ts'
import { claudeCommand, mcpConfig } from './args.ts'
import { findDefaultModel } from './default-model.ts'
import type { ClaudeOutcomeFacts } from './outcome.ts'
import type { ClaudeFeatures, ClaudeProgram } from './program.ts'
import { type ClaudeSession, readSession } from './session.ts'
import type { ClaudeAgent } from './warm-turn.ts'

/** Enough: claude saves its session while it works and exits within 50 ms. */
export const KILL_GRACE_MS = 1_000

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

export interface ClaudeContext {
  readonly settings: CliSettings
  readonly context: BackendContext
  readonly program: ClaudeProgram
  readonly warm: WarmPool<ClaudeAgent>
}

export interface StartPlan {
  readonly claude: ClaudeContext
  readonly turn: Turn
  /** The part of its environment that is not inherited. */
  readonly additions: Readonly<Record<string, string>>
  /** The model that was chosen for the conversation; undefined = claude's default. */
  readonly model: string | undefined
  /** The model to name to a new process; it differs from `model` on the way back to the default. */
  readonly startModel: string | undefined
  readonly session: ClaudeSession | undefined
  readonly features: ClaudeFeatures
  readonly servers: readonly McpServer[]
}

/** The features matter only to a process that resumes a session. Any other turn does not wait for the version. */
const NO_RESUME: ClaudeFeatures = { unknownOptions: new Set(), addsUpCost: false }

export async function planStart(turn: Turn, claude: ClaudeContext, signal: AbortSignal): Promise<StartPlan> {
  const { settings, context, program } = claude
  const session = readSession(turn.sessionToken)
  const model = chooseModel(settings.model, turn.model, 'dropped')
  const isGoingBack = model === undefined && session?.model !== undefined
  const additions = await additionsOf(turn, claude)
  const known = { ...context.environment, ...additions }
  const plan: StartPlan = {
    claude,
    turn,
    additions,
    model,
    session,
    startModel: isGoingBack ? await findDefaultModel(turn.workingDir, known, settings.args) : model,
    features: program.remembered(NO_RESUME),
    // The last server of a name wins, so that an owner's server cannot replace one of the platform.
    servers: [...settings.mcpServers, ...turn.mcpServers],
  }
  const isResumed = session !== undefined && !claude.warm.has(turn.conversationId, matchOf(plan))
  return isResumed ? { ...plan, features: await program.features(signal) } : plan
}

/** Whether a warm process is the one that this plan would start. */
export function matchOf({ turn, additions, model, session, servers }: StartPlan) {
  return {
    // Without the inherited environment: it is the same for every turn of this backend.
    fingerprint: JSON.stringify([model, servers, additions, turn.workingDir, turn.systemPrompt]),
    // A conversation with a new or another session must not find the memory of the old one.
    fits: (agent: ClaudeAgent) => agent.sessionId === session?.id,
  }
}

async function additionsOf(turn: Turn, { settings, context }: ClaudeContext): Promise<Record<string, string>> {
  const known = { ...context.environment, ...turn.env }
  const limits = turn.mcpServers.length === 0 ? [] : Object.entries(MCP_ENVIRONMENT)
  const own = {
    ...Object.fromEntries(limits.filter(([name]) => known[name] === undefined)),
    ...(known['CLAUDE_CODE_MAX_RETRIES'] === undefined && RETRY_ENVIRONMENT),
    ...(await readTokenVariables(AUTH, known, settings.authTokenFile)),
  }
  const { mode, passMeta } = settings
  return environmentAdditions(turn, { mode, passMeta, own })
}

export const environmentOf = ({ claude, additions }: StartPlan) =>
  withoutOuterClaude(childEnvironment(claude.context.environment, additions))

export const withoutOuterClaude = (env: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !OUTER_CLAUDE_VARIABLES.has(name)))

export function commandOf(plan: StartPlan, folder: PrivateFolder) {
  const { claude, turn, startModel, session, features, servers } = plan
  const { settings } = claude
  const { systemPrompt } = turn
  // If no person is asked, the owner's servers are trusted too: otherwise their tools could never be used.
  const trusted = settings.permission === 'ask' ? turn.mcpServers : servers
  return claudeCommand({
    settings,
    model: startModel,
    sessionId: session?.id,
    systemPromptFile: systemPrompt === '' ? undefined : folder.write('system-prompt.md', systemPrompt),
    mcpConfigFile: servers.length === 0 ? undefined : folder.write('mcp.json', mcpConfig(servers)),
    trustedServers: trusted.map(({ name }) => name),
    unknownOptions: features.unknownOptions,
  })
}

export function factsOf({ settings, context }: Pick<ClaudeContext, 'settings' | 'context'>): ClaudeOutcomeFacts {
  const { bin: command, timeout, maxTurns } = settings
  return { command, timeout, maxTurns, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() }
}
