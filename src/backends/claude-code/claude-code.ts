/**
 * The `claude-code` backend, the default: the user's own `claude`, kept warm (one process a conversation, stream-json
 * both ways) or started once a message (`mode=oneshot`). Its memory is claude's own; our session token is its session
 * id. What it prints is read in parse.ts, what it comes to in outcome.ts, its flags are in args.ts.
 */
import { childEnvironment } from '../../process/environment.ts'
import type { Running } from '../../process/processes.ts'
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
import { additionsOf } from '../engine/agent-environment.ts'
import { writeAttachments } from '../engine/attachments.ts'
import { type Auth, readAuth } from '../engine/auth.ts'
import { type CliKind, type CliSettings, cliOptions, readCliSettings } from '../engine/cli-options.ts'
import { cliTurn } from '../engine/cli-turn.ts'
import { withFallback } from '../engine/fallback.ts'
import { chooseModel } from '../engine/model.ts'
import { createPrivateFolder, type PrivateFolder } from '../engine/private-folder.ts'
import { createTurns, type EndEvent, OUTPUT_BYTES_MAX, type Telling } from '../engine/turns.ts'
import { validateCli } from '../engine/validate.ts'
import { createWarm, type Launch, type Warm } from '../engine/warm.ts'
import { warmTurn } from '../engine/warm-turn.ts'
import { claudeCommand, mcpConfig } from './args.ts'
import { AS_ROOT, endOf, failureOfRun, type OutcomeFacts, usageOf } from './outcome.ts'
import { type ClaudeResult, parseResult } from './parse.ts'
import { denyUnheard } from './permission.ts'
import { probeClaude } from './probe.ts'
import { type ClaudeAgent, claudeTurn } from './session.ts'

const LINE_BYTES_MAX = 16 * 1024 * 1024
const STDERR_BYTES_KEPT = 16 * 1024
/** It saves its session as it goes, and leaves within 50 ms. */
const KILL_GRACE_MS = 1_000

const KIND: CliKind = {
  backend: 'claude-code',
  bin: 'claude',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  maxTurnsDefault: 25,
  cannot: [],
  quiet: {
    stateIn: ['CLAUDE_CONFIG_DIR'],
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  },
}

const AUTH: Auth = {
  variable: 'CLAUDE_CODE_OAUTH_TOKEN',
  from: ['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_AUTH_TOKEN'],
  instead: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
}

/** It retries ten times by default, 401 included, and says nothing for a minute; retrying is the runtime's. */
const RETRIES = { CLAUDE_CODE_MAX_RETRIES: '1' }
/** Of a claude that Molecule itself was started from: a child that sees it refuses to start inside another. */
const OF_ANOTHER_CLAUDE: ReadonlySet<string> = new Set(['CLAUDECODE', 'CLAUDE_CODE_ENTRYPOINT', 'CLAUDE_CODE_SSE_PORT'])

export const claudeCode: BackendDefinition = {
  name: KIND.backend,
  summary: 'Claude Code: the claude on this machine, kept warm, a session for each conversation',
  options: cliOptions(KIND, {
    bin: 'the program (claude)',
    max_turns: 'how many steps a turn may take (25)',
    mode: 'session: one warm process a conversation (default); oneshot: claude -p a message',
  }),
  runsCommands: true,
  reportsTools: true,
  tested: '2.1.325',
  create: (options, context) =>
    withFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createClaude(settings, context),
    ),
}

interface Claude {
  readonly settings: CliSettings
  readonly context: BackendContext
  readonly warm: Warm<ClaudeAgent>
}

function createClaude(settings: CliSettings, context: BackendContext): Backend {
  const { clock } = context
  const isWarm = settings.mode === 'session'
  const warm = createWarm<ClaudeAgent>({ max: settings.warmMax, idleMs: settings.warmIdleMs, clock, sessionsMax: 1 })
  const claude: Claude = { settings, context, warm }
  const turns = createTurns({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: maxTimeMs(settings) })
  return {
    name: KIND.backend,
    // A one-shot gives no sign of life before its end, so there the time-out is wall clock.
    ...(isWarm && settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: (signal) => validate(claude, signal),
    run: (turn, signal) => turns.run((telling) => perform(turn, claude, telling), signal),
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

async function validate({ settings, context }: Claude, signal: AbortSignal): Promise<Validation> {
  const isRoot = process.getuid?.() === 0
  if (settings.permission === 'bypass' && isRoot && context.environment['IS_SANDBOX'] !== '1') {
    return { ok: false, problem: `backend "${KIND.backend}" (${settings.bin}): permission is bypass`, remedy: AS_ROOT }
  }
  const { processes, environment: env } = context
  const install = 'install it with `npm install -g @anthropic-ai/claude-code`'
  return validateCli({ processes, env, backend: KIND.backend, bin: settings.bin, install, quiet: KIND.quiet }, signal)
}

async function probe(claude: Claude, signal: AbortSignal): Promise<readonly Drift[]> {
  const { settings, context } = claude
  const environment = withoutAnotherClaude(context.environment)
  const looking = { context: { ...context, environment }, settings, quiet: KIND.quiet ?? { stateIn: [] } }
  return probeClaude({ ...looking, facts: factsOf(claude) }, signal)
}

async function perform(turn: Turn, claude: Claude, telling: Telling): Promise<EndEvent> {
  const { settings, context } = claude
  const { workingDir, id: turnId } = turn
  const attaching = { workingDir, turnId, outbound: context.outbound, clock: context.clock }
  const { promptLines } = await writeAttachments(turn.request.parts, attaching, telling.signal)
  const prompt = [turn.prompt, ...promptLines].join('\n')
  const plan = await makePlan(turn, claude)
  if (settings.mode === 'oneshot') return oneShot(plan, prompt, telling)
  const given = { turn, prompt, facts: () => factsOf(claude), clock: context.clock }
  const launch = launchOf(plan)
  return warmTurn({ warm: claude.warm, clock: context.clock, key: turn.conversationId, launch }, telling, (lease) =>
    claudeTurn(lease, given, telling),
  )
}

/** All that a process for this turn is started with. */
interface Plan {
  readonly claude: Claude
  readonly turn: Turn
  /** Of its environment, what is not inherited. */
  readonly additions: Readonly<Record<string, string>>
  readonly model: string | undefined
  readonly servers: readonly McpServer[]
}

async function makePlan(turn: Turn, claude: Claude): Promise<Plan> {
  const { settings, context } = claude
  const known = { ...context.environment, ...turn.env }
  const own = {
    ...(known['CLAUDE_CODE_MAX_RETRIES'] === undefined && RETRIES),
    ...(await readAuth(AUTH, known, settings.authTokenFile)),
  }
  const { mode, passMeta } = settings
  return {
    claude,
    turn,
    additions: additionsOf(turn, { mode, passMeta, own }),
    model: chooseModel(settings.model, turn.model, 'dropped'),
    // The last of a name counts: nobody stands in for a server of the platform.
    servers: [...settings.mcpServers, ...turn.mcpServers],
  }
}

const environmentOf = ({ claude, additions }: Plan) =>
  withoutAnotherClaude(childEnvironment(claude.context.environment, additions))

const withoutAnotherClaude = (env: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !OF_ANOTHER_CLAUDE.has(name)))

function commandOf({ claude: { settings }, turn, model, servers }: Plan, folder: PrivateFolder) {
  const { systemPrompt, sessionToken } = turn
  // Where nobody can be asked, a server that its owner named is of no use unless its tools are allowed.
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

function launchOf(plan: Plan): Launch<ClaudeAgent> {
  const { turn, additions, model, servers } = plan
  return {
    // What is inherited is the same for every turn of this backend.
    fingerprint: JSON.stringify([model, servers, additions, turn.workingDir, turn.systemPrompt]),
    // A conversation that was begun anew, or whose session is another by now, must not find the old memory.
    fits: (agent) => agent.sessionId === turn.sessionToken,
    start: () => startAgent(plan),
  }
}

function startAgent(plan: Plan): ClaudeAgent {
  const { claude, turn } = plan
  const { processes, log } = claude.context
  const folder = createPrivateFolder()
  const running: Running = processes.start({
    command: commandOf(plan, folder),
    cwd: turn.workingDir,
    env: environmentOf(plan),
    mark: turn.id,
    stderrBytesKept: STDERR_BYTES_KEPT,
    killGraceMs: KILL_GRACE_MS,
    lineBytesMax: LINE_BYTES_MAX,
    onLine: (line) => (agent.hear === undefined ? denyUnheard(running, line) : agent.hear(line)),
  })
  const ended = running.ended.finally(() => folder.remove())
  const agent: ClaudeAgent = {
    running: { ...running, ended },
    ended,
    stop: () => running.stop(),
    sessionId: turn.sessionToken,
    hear: undefined,
    hasSpoken: false,
    log,
  }
  return agent
}

async function oneShot(plan: Plan, prompt: string, telling: Telling): Promise<EndEvent> {
  const { claude, turn } = plan
  const env = environmentOf(plan)
  const folder = createPrivateFolder()
  try {
    const work = cliTurn(claude.context.processes, {
      run: { command: commandOf(plan, folder), cwd: turn.workingDir, env, mark: turn.id, killGraceMs: KILL_GRACE_MS },
      input: prompt,
      read: (line) => resultEvents(parseResult(line), plan),
      conclude: (run, stdout) => ({ type: 'failed', error: failureOfRun(run, stdout, factsOf(claude)) }),
    })
    return await work(telling)
  } finally {
    folder.remove()
  }
}

/** Its one line of output says it all. */
function resultEvents(result: ClaudeResult | undefined, { claude, turn }: Plan): readonly BackendEvent[] {
  if (result === undefined) return []
  // A session's first turn costs what the session does; of a later one only the sum is told.
  const costUsd = result.costUsd ?? (turn.sessionToken === undefined ? result.sessionCostUsd : undefined)
  const session: BackendEvent = { type: 'session', token: result.sessionId }
  return [
    ...(result.sessionId === '' ? [] : [session]),
    ...usageOf({ ...result, costUsd }),
    endOf(result, factsOf(claude)),
  ]
}

function factsOf({ settings, context }: Claude): OutcomeFacts {
  const { bin: command, timeout, maxTurns } = settings
  return { command, timeout, maxTurns, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() }
}
