/**
 * The engine of every agent that speaks ACP: one warm process per workspace with a session per conversation, or one
 * process per conversation. A session outlives its process if the agent can load it. Invariant: a turn never runs in a
 * session of another conversation. After a cancelled turn nothing that its tools started is left: cleanUpAfterTurn.
 */
import { hash } from 'node:crypto'
import { toMoleculeError } from '../../../errors.ts'
import { childEnvironment } from '../../../process/child-environment.ts'
import { traceFromVariables } from '../../../protocol/trace-context.ts'
import { abortable, sleep } from '../../../wait.ts'
import type { Backend, BackendContext, McpServer, Turn } from '../../backend.ts'
import { type CliSettings, warnUnsupportedOption } from '../cli/cli-options.ts'
import { environmentAdditions } from '../environment/agent-environment.ts'
import { promptWithFiles, writeAttachments } from '../files/attachments.ts'
import { createPrivateFolder, type PrivateFolder } from '../files/private-folder.ts'
import { sessionPromptOf } from '../session-prompt.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../turn-engine.ts'
import { createWarmPool, type WarmAgent, type WarmLaunch, type WarmPool } from '../warm/warm-pool.ts'
import { runWarmTurn, type WarmTurnResult } from '../warm/warm-turn.ts'
import { type AcpAgent, type AcpAgentOptions, startAcpAgent } from './acp-agent.ts'
import type { AcpErrorMeanings } from './acp-errors.ts'
import { withAuthMethods } from './auth-method.ts'
import { withTokenFile } from './mcp-token-file.ts'
import { openSession } from './open-session.ts'
import { type AcpPermission, isAllowed, isToolOfServers } from './permission.ts'
import { type AcpCommand, probeAcp, startFactsOf } from './probe-acp.ts'
import { type AcpPermissionDecision, runPrompt } from './run-prompt.ts'
import { createStartGate, type StartGate } from './start-gate.ts'

export interface AcpLimits {
  /** Turns at the same time in one process; more turns wait. */
  readonly turnsMax: number
  /** Sessions in one process; with more, new turns get a new process and this one ends after its last turn. */
  readonly sessionsMax: number
}

const LIMITS: AcpLimits = { turnsMax: 64, sessionsMax: 500 }
/** The token of one conversation. A process that all conversations share must not have it; MCP servers get it per session. */
const CONVERSATION_VARIABLE = 'MOLECULE_WORKSPACE_TOKEN'

/** The description of one agent program. */
export interface AcpProgram extends AcpCommand {
  readonly backend: string
  /** `conversation` for a program whose tools need the variables of their conversation. */
  readonly serves: 'workspace' | 'conversation'
  readonly settings: CliSettings
  /** The model under this agent's name for it. */
  readonly model: (turn: Turn) => string | undefined
  /** The login method to use, of those that the agent offers. Undefined: the agent has its own login. */
  readonly authMethod?: string | undefined
  /** The owner may set `auth_method`, so an error about the login names the methods. */
  readonly takesAuthMethod?: boolean
  /** The command line sets the model, so the session need not. */
  readonly modelByCommand?: boolean
  /** The earliest time at which a new process may load a session that began at `begunMs`; undefined = at once. */
  readonly loadableFromMs?: (begunMs: number) => number
  /** The prompt as this agent must get it, e.g. so that it does not take it for a command. */
  readonly promptText?: (prompt: string) => string
  readonly errorMeanings?: AcpErrorMeanings
  /**
   * For a program that retries failed calls of the model in silence and logs them on stderr. Contract: it retries what a
   * retry can mend, and only that. Needs `serves: 'conversation'`: the log does not say which turn a call belongs to.
   */
  readonly failedCallIn?: AcpAgentOptions['failedCallIn']
  /** The variable that names a file to log to, for a program that logs failed calls there and not on stderr. */
  readonly logVariable?: string
  /** A starting process deletes all sessions without a message, also those of other processes. */
  readonly sweepsAtStart?: boolean
  /** The title of a tool call's first update is the tool's name, which the model cannot choose. */
  readonly titlesAreNames?: boolean
  /** How the program calls a tool of an MCP server; default: unknown, so the tool's own name. */
  readonly mcpToolName?: Backend['mcpToolName'] & {}
  readonly validate: Backend['validate']
}

export function createAcpBackend(program: AcpProgram, context: BackendContext, limits = LIMITS): Backend {
  const { settings, backend, isolation } = program
  const { clock } = context
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  const warm = createWarmPool<GenerationAgent>({
    processesMax: settings.warmMax,
    idleMs: settings.warmIdleMs,
    clock,
    turnsPerProcessMax: program.serves === 'workspace' ? limits.turnsMax : 1,
  })
  const startGate = program.sweepsAtStart === true ? createStartGate(clock) : undefined
  const acpContext: AcpContext = { program, context, limits, warm, startGate, generation: 0, warnedOf: new Set() }
  return {
    name: backend,
    mcpToolName: program.mcpToolName ?? ((_, tool) => tool),
    stallMs: settings.timeoutMs,
    validate: program.validate,
    run: (turn, signal) => turns.run((stream) => runTurn(acpContext, turn, stream), signal, turn.onWait),
    ...(isolation !== undefined && { probe: (signal) => probeAcp({ ...program, isolation }, context, signal) }),
    async close() {
      await Promise.all([turns.close(), warm.close()])
    },
  }
}

interface GenerationAgent extends AcpAgent {
  /** `AcpContext.generation` when the process started. */
  readonly generation: number
  /** Removed when the process has ended. */
  readonly files: PrivateFolder
}

interface AcpContext {
  readonly program: AcpProgram
  readonly context: BackendContext
  readonly limits: AcpLimits
  readonly warm: WarmPool<GenerationAgent>
  readonly startGate: StartGate | undefined
  /** Raised to give new turns a new process. */
  generation: number
  /** Options that were warned of, so that the log has one warning and not one for every turn. */
  readonly warnedOf: Set<string>
}

async function runTurn(acpContext: AcpContext, turn: Turn, stream: TurnStream): Promise<EndEvent> {
  const { program, context, warm } = acpContext
  const { clock, outbound } = context
  const { workingDir } = turn
  const options = { workingDir, turnId: turn.id, clock, outbound }
  const { promptLines } = await writeAttachments(turn.request.parts, options, stream.signal)
  const launch = await warmLaunchOf(acpContext, turn)
  const key = program.serves === 'workspace' ? turn.request.workspace_id : turn.conversationId
  const prompt = promptWithFiles(turn.prompt, promptLines)
  return runWarmTurn({ warm, clock, key, launch }, stream, (warmAgent) =>
    runOnAgent(acpContext, warmAgent, { turn: { ...turn, prompt }, stream, model: program.model(turn) }),
  )
}

let launches = 0

async function warmLaunchOf(
  { program, context, startGate, generation }: AcpContext,
  turn: Turn,
): Promise<WarmLaunch<GenerationAgent>> {
  const { processes, log, clock } = context
  const { settings, backend } = program
  const own = await program.environment()
  const additions = environmentAdditions(turn, { mode: 'session', passMeta: settings.passMeta, own })
  if (program.serves === 'workspace') delete additions[CONVERSATION_VARIABLE]
  const command = program.command(program.model(turn))
  const cwd = turn.workingDir
  return {
    // Without the inherited environment: it is the same for every turn of this backend.
    fingerprint: JSON.stringify([command, cwd, additions, generation]),
    start: () => {
      launches += 1
      const files = createPrivateFolder()
      // A log file that the owner has set stays where it is.
      const { logVariable = '' } = program
      const logFile = logVariable === '' || context.environment[logVariable] ? undefined : files.write('log', '')
      const env = childEnvironment(context.environment, { ...additions, ...(logFile && { [logVariable]: logFile }) })
      const spawning = { command, cwd, env, mark: `${backend}-${process.pid}-${launches}` }
      const facts = () => startFactsOf(program, command[0], clock.nowMs())
      const { failedCallIn, authMethod } = program
      const agent = startAcpAgent({ processes, spawning, log, facts, failedCallIn, authMethod, logFile })
      startGate?.track(agent.greeting)
      void agent.ended.then(() => files.remove())
      return { ...agent, generation, files }
    },
  }
}

/** New turns get a new process. The turns in this one continue, and it ends after the last of them. */
function retireProcess(acpContext: AcpContext, { generation }: GenerationAgent): void {
  if (generation === acpContext.generation) acpContext.generation += 1
}

interface AcpTurnInput {
  readonly turn: Turn
  readonly stream: TurnStream
  readonly model: string | undefined
}

async function runOnAgent(
  acpContext: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  input: AcpTurnInput,
): Promise<WarmTurnResult> {
  const { agent } = warmAgent
  const { signal } = input.stream
  let isGreeted = false
  await waitForCleanup(agent)
  agent.turns += 1
  try {
    await abortable(agent.greeting, signal)
    isGreeted = true
    const { end, hasStopped, since } = await promptAgent(acpContext, warmAgent, input)
    const named = await withLogins(end, acpContext, agent)
    return await cleanUpAfterTurn(acpContext, warmAgent, { stream: input.stream, end: named, hasStopped, since })
  } catch (thrown) {
    const end = await withLogins({ type: 'failed', error: toMoleculeError(thrown) }, acpContext, agent)
    // Cancelled before the agent took the prompt: it hangs at the greeting or over a session, so it has not stopped.
    if (signal.aborted) {
      return cleanUpAfterTurn(acpContext, warmAgent, { stream: input.stream, end, hasStopped: false, since: 0 })
    }
    return { end, isUsable: isGreeted }
  } finally {
    agent.turns -= 1
  }
}

/** An agent may want a login when a session is opened, or only at its first prompt. */
async function withLogins(end: EndEvent, { program }: AcpContext, { greeting }: AcpAgent): Promise<EndEvent> {
  if (end.type !== 'failed' || end.error.code !== 'auth_failed' || program.takesAuthMethod !== true) return end
  const offer = await greeting.catch(() => undefined)
  return offer === undefined ? end : { type: 'failed', error: withAuthMethods(end.error, offer) }
}

async function promptAgent(
  acpContext: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  { turn, stream, model }: AcpTurnInput,
) {
  const { program, context } = acpContext
  const { agent } = warmAgent
  const { settings, backend } = program
  const ownServers = serversOf(turn, program, agent.files)
  const sessionPrompt = sessionPromptOf(turn)
  const nowMs = context.clock.nowMs()
  const sessionOptions = {
    sessionId: sessionPrompt.sessionId,
    usualModel: sessionPrompt.usualModel,
    cwd: turn.workingDir,
    mcpServers: [...ownServers, ...settings.mcpServers],
    model: program.modelByCommand ? undefined : model,
    nowMs,
    onModelRefused: (why: string) => warnOnce(acpContext, { option: 'model', why }),
  }
  if (sessionPrompt.sessionId === undefined || !agent.sessions.has(sessionPrompt.sessionId)) {
    await waitUntilLoadable(acpContext, sessionPrompt.begunMs, stream)
    await acpContext.startGate?.waitUntilIdle(stream.signal)
  }
  const { id: sessionId, isResumed, usualModel } = await openSession(agent, sessionOptions, stream.signal)
  const begunMs = sessionId === sessionPrompt.sessionId ? sessionPrompt.begunMs : context.clock.nowMs()
  const facts = { usualModel, begunMs: program.loadableFromMs === undefined ? undefined : begunMs }
  stream.emit({ type: 'session', token: sessionPrompt.token(sessionId, facts) })
  const since = agent.running.moment()
  const decide = createPermissionDecider(acpContext, warmAgent, { turn, stream, servers: ownServers })
  const text = program.promptText?.(sessionPrompt.prompt) ?? sessionPrompt.prompt
  const { titlesAreNames, errorMeanings } = program
  const promptOptions = {
    backend,
    sessionId,
    isResumed,
    text,
    nowMs,
    decide,
    workingDir: turn.workingDir,
    titlesAreNames,
    errorMeanings,
    warn: (words: string) => context.log.debug({ backend, words }, 'the agent warns'),
    trace: traceFromVariables(turn.env),
  }
  return { ...(await runPrompt(agent, promptOptions, stream)), since }
}

/**
 * The servers of the turn. A process that all conversations share gets another name for each conversation: opencode
 * takes two servers of one name in one folder for the same server, and would use the token of the wrong conversation.
 */
function serversOf(
  { mcpServers, conversationId, request }: Turn,
  { serves }: AcpProgram,
  files: PrivateFolder,
): readonly McpServer[] {
  if (serves === 'conversation') return mcpServers
  const suffix = hash('sha256', conversationId, 'hex').slice(0, 8)
  return mcpServers.map((server) =>
    withTokenFile({ ...server, name: `${server.name}-${suffix}` }, request.workspace_id, files),
  )
}

async function waitUntilLoadable({ program, context }: AcpContext, begunMs: number | undefined, stream: TurnStream) {
  if (begunMs === undefined || program.loadableFromMs === undefined) return
  const waitMs = program.loadableFromMs(begunMs) - context.clock.nowMs()
  if (waitMs <= 0) return
  const seconds = Math.ceil(waitMs / 1000)
  stream.emit({ type: 'status', text: `${program.backend} can load this session in ${seconds} s` })
  await sleep(context.clock, waitMs, stream.signal)
}

/**
 * Decides whether the process can be used again. A cancelled turn that was alone in the process takes everything with
 * it that its tools left running. With other turns in the process it is unknown which turn started which child, so the
 * process gets no new turns and ends after the last one.
 */
async function cleanUpAfterTurn(
  acpContext: AcpContext,
  { agent }: WarmAgent<GenerationAgent>,
  {
    stream,
    end,
    hasStopped,
    since,
  }: {
    readonly stream: TurnStream
    readonly end: EndEvent
    readonly hasStopped: boolean
    /** When the prompt was sent. */
    readonly since: number
  },
): Promise<WarmTurnResult> {
  const isCancelled = stream.signal.aborted
  const isAlone = agent.turns === 1
  if (agent.sessions.size > acpContext.limits.sessionsMax || (isCancelled && !isAlone)) retireProcess(acpContext, agent)
  if (!isCancelled || !isAlone) return { end, isUsable: isCancelled || hasStopped }
  if (!hasStopped) return { end, isUsable: false }
  // New turns wait for the cleanup. Otherwise it would kill what they start.
  const cleaning = agent.running.killChildrenSince(since)
  agent.cleanup = cleaning
  return { end, isUsable: await cleaning }
}

/** Repeats, because another cleanup may have begun during the wait. */
async function waitForCleanup(agent: AcpAgent): Promise<void> {
  for (let awaited: unknown; awaited !== agent.cleanup; ) {
    awaited = agent.cleanup
    await awaited
  }
}

/** Decides by the owner's settings. With `permission: ask` a person decides, for this one use. */
function createPermissionDecider(
  { program }: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  { turn, stream, servers }: Pick<AcpTurnInput, 'turn' | 'stream'> & { readonly servers: readonly McpServer[] },
) {
  const { permission: policy, allowedTools } = program.settings
  let asking = 0
  return async (permission: AcpPermission, signal: AbortSignal): Promise<AcpPermissionDecision> => {
    if (policy === 'bypass' || isAllowed(permission, allowedTools) || isToolOfServers(permission, servers)) {
      return { allowed: true, lasting: true }
    }
    if (policy !== 'ask') return { allowed: false, lasting: false }
    const { id, tool, subject } = permission
    const ask = () => turn.ask({ id, tool, subject }, signal)
    asking += 1
    try {
      // The first open question gives up the turn's slot. A second question at the same time has none to give up.
      const decision = await stream.pauseDuring(asking === 1 ? warmAgent.suspendDuring(ask, signal) : ask())
      return { allowed: decision === 'allowed', lasting: false }
    } finally {
      asking -= 1
    }
  }
}

function warnOnce({ program, context, warnedOf }: AcpContext, { option, why }: { option: string; why: string }): void {
  if (warnedOf.has(option)) return
  warnedOf.add(option)
  warnUnsupportedOption(context.log, program.backend, { option, why })
}
