/**
 * The engine of every agent that speaks ACP: one warm process for a workspace, with a session for each conversation, or
 * a process a conversation for agents whose commands are to know whose they are. Sessions outlive the process where the
 * agent can load them. A cancelled turn that was alone in the process takes
 * what its tools left running with it; where others run beside it, nobody can tell whose child is whose, so the process
 * gets no new turns and ends with the last of them. Invariant: a turn never runs in a session of another conversation.
 */

import { toMoleculeError } from '../../../errors.ts'
import { childEnvironment } from '../../../process/child-environment.ts'
import { sleep } from '../../../wait.ts'
import type { Backend, BackendContext, Turn } from '../../backend.ts'
import { abortable } from '../abortable.ts'
import { type CliSettings, warnUnsupportedOption } from '../cli/cli-options.ts'
import { promptWithFiles } from '../cli/one-shot-agent.ts'
import { environmentAdditions } from '../environment/agent-environment.ts'
import { writeAttachments } from '../files/attachments.ts'
import { sessionPromptOf } from '../session-prompt.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../turn-engine.ts'
import { createWarmPool, type WarmAgent, type WarmLaunch, type WarmPool } from '../warm/warm-pool.ts'
import { runWarmTurn, type WarmTurnResult } from '../warm/warm-turn.ts'
import { type AcpAgent, startAcpAgent } from './acp-agent.ts'
import { openSession } from './open-session.ts'
import { type AcpPermission, isAllowed, isToolOfServers } from './permission.ts'
import { type AcpCommand, probeAcp, startFactsOf } from './probe-acp.ts'
import { type AcpPermissionDecision, runPrompt } from './run-prompt.ts'
import { createStartGate, type StartGate } from './start-gate.ts'

export interface AcpLimits {
  /** Turns at once in one process; more wait. */
  readonly turnsMax: number
  /** Sessions that one process may hold; with more it is replaced when its turns have ended. */
  readonly sessionsMax: number
}

const LIMITS: AcpLimits = { turnsMax: 64, sessionsMax: 500 }
/** Of one conversation; in a process that all share it would be everybody's. MCP servers get it, session by session. */
const CONVERSATION_VARIABLE = 'MOLECULE_WORKSPACE_TOKEN'

/** What is the program's own. */
export interface AcpProgram extends AcpCommand {
  readonly backend: string
  /** Whom one process serves. */
  readonly serves: 'workspace' | 'conversation'
  readonly settings: CliSettings
  /** The model as this agent names it. */
  readonly model: (turn: Turn) => string | undefined
  /** Whether the model was told on the command line, so that the session need not be. */
  readonly modelByCommand?: boolean
  /** From when on a session that began then may be loaded into a new process; undefined = at once. */
  readonly loadableFromMs?: (begunMs: number) => number
  /** Whether one that starts removes sessions in which nothing was said yet, those of others too. */
  readonly sweepsAtStart?: boolean
  readonly validate: Backend['validate']
}

export function createAcpBackend(program: AcpProgram, context: BackendContext, limits = LIMITS): Backend {
  const { settings, backend, quiet } = program
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
    ...(settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: program.validate,
    run: (turn, signal) => turns.run((stream) => runTurn(acpContext, turn, stream), signal),
    ...(quiet !== undefined && { probe: (signal) => probeAcp({ ...program, quiet }, context, signal) }),
    async close() {
      await Promise.all([turns.close(), warm.close()])
    },
  }
}

/** An agent, and the generation of processes that it is of. */
interface GenerationAgent extends AcpAgent {
  readonly generation: number
}

interface AcpContext {
  readonly program: AcpProgram
  readonly context: BackendContext
  readonly limits: AcpLimits
  readonly warm: WarmPool<GenerationAgent>
  readonly startGate: StartGate | undefined
  /** Raised when the process shall have a successor for new turns; a backend is of one workspace. */
  generation: number
  /** What has been warned of already: it would be the same with every turn. */
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
    // What is inherited is the same for every turn of this backend.
    fingerprint: JSON.stringify([command, cwd, additions, generation]),
    start: () => {
      launches += 1
      const env = childEnvironment(context.environment, additions)
      const spawning = { command, cwd, env, mark: `${backend}-${process.pid}-${launches}` }
      const facts = () => startFactsOf(program, command[0], clock.nowMs())
      const agent = startAcpAgent({ processes, spawning, log, facts })
      startGate?.track(agent.greeting)
      return { ...agent, generation }
    },
  }
}

/** New turns get another process; those that run here go on, and it ends with the last of them. */
function retireProcess(acpContext: AcpContext, { generation }: GenerationAgent): void {
  if (generation === acpContext.generation) acpContext.generation += 1
}

interface Work {
  readonly turn: Turn
  readonly stream: TurnStream
  readonly model: string | undefined
}

async function runOnAgent(
  acpContext: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  work: Work,
): Promise<WarmTurnResult> {
  const { agent } = warmAgent
  const { signal } = work.stream
  let isGreeted = false
  await waitForCleanup(agent)
  agent.turns += 1
  try {
    await abortable(agent.greeting, signal)
    isGreeted = true
    const { end, hasStopped, since } = await promptAgent(acpContext, warmAgent, work)
    return await cleanUpAfterTurn(acpContext, warmAgent, { ...work, end, hasStopped, since })
  } catch (thrown) {
    const end: EndEvent = { type: 'failed', error: toMoleculeError(thrown) }
    // Before a prompt was taken. One that does not even greet, or hangs over a session, is of no use to anybody.
    if (signal.aborted) return cleanUpAfterTurn(acpContext, warmAgent, { ...work, end, hasStopped: false, since: 0 })
    return { end, isUsable: isGreeted }
  } finally {
    agent.turns -= 1
  }
}

async function promptAgent(
  acpContext: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  { turn, stream, model }: Work,
) {
  const { program, context } = acpContext
  const { agent } = warmAgent
  const { settings, backend } = program
  const opening = sessionPromptOf(turn)
  const nowMs = context.clock.nowMs()
  const sessionOptions = {
    sessionId: opening.sessionId,
    cwd: turn.workingDir,
    mcpServers: [...turn.mcpServers, ...settings.mcpServers],
    model: program.modelByCommand ? undefined : model,
    nowMs,
    onModelRefused: (why: string) => warnOnce(acpContext, { option: 'model', why }),
  }
  if (opening.sessionId === undefined || !agent.sessions.has(opening.sessionId)) {
    await waitUntilLoadable(acpContext, opening.begunMs, stream)
    await acpContext.startGate?.waitUntilIdle(stream.signal)
  }
  const sessionId = await openSession(agent, sessionOptions, stream.signal)
  const begunMs = sessionId === opening.sessionId ? opening.begunMs : context.clock.nowMs()
  const token = opening.token(sessionId, program.loadableFromMs === undefined ? undefined : begunMs)
  stream.emit({ type: 'session', token })
  const since = agent.running.moment()
  const decide = createPermissionDecider(acpContext, warmAgent, { turn, stream })
  const promptOptions = { backend, sessionId, text: opening.prompt, nowMs, decide }
  return { ...(await runPrompt(agent, promptOptions, stream)), since }
}

async function waitUntilLoadable({ program, context }: AcpContext, begunMs: number | undefined, stream: TurnStream) {
  if (begunMs === undefined || program.loadableFromMs === undefined) return
  const waitMs = program.loadableFromMs(begunMs) - context.clock.nowMs()
  if (waitMs <= 0) return
  const seconds = Math.ceil(waitMs / 1000)
  stream.emit({ type: 'status', text: `${program.backend} can load this session in ${seconds} s` })
  await sleep(context.clock, waitMs, stream.signal)
}

interface Left extends Work {
  readonly end: EndEvent
  readonly hasStopped: boolean
  readonly since: number
}

/** What becomes of the process, and of what a cancelled turn left running in it. */
async function cleanUpAfterTurn(
  acpContext: AcpContext,
  { agent }: WarmAgent<GenerationAgent>,
  left: Left,
): Promise<WarmTurnResult> {
  const { stream, end, hasStopped, since } = left
  const isCancelled = stream.signal.aborted
  const isAlone = agent.turns === 1
  if (agent.sessions.size > acpContext.limits.sessionsMax || (isCancelled && !isAlone)) retireProcess(acpContext, agent)
  if (!isCancelled || !isAlone) return { end, isUsable: true }
  if (!hasStopped) return { end, isUsable: false }
  // New turns wait, or what they start would be taken for a remnant of this one.
  const cleaning = agent.running.stopChildrenSince(since)
  agent.cleanup = cleaning
  return { end, isUsable: await cleaning }
}

/** Another may have begun to clean up while we waited for the one before. */
async function waitForCleanup(agent: AcpAgent): Promise<void> {
  for (let seen: unknown; seen !== agent.cleanup; ) {
    seen = agent.cleanup
    await seen
  }
}

/** By the owner's settings; where those say so, by a person, for this once. */
function createPermissionDecider(
  { program }: AcpContext,
  warmAgent: WarmAgent<GenerationAgent>,
  { turn, stream }: Pick<Work, 'turn' | 'stream'>,
) {
  const { permission: policy, allowedTools } = program.settings
  let asking = 0
  return async (permission: AcpPermission, signal: AbortSignal): Promise<AcpPermissionDecision> => {
    if (policy === 'bypass' || isAllowed(permission, allowedTools) || isToolOfServers(permission, turn.mcpServers)) {
      return { allowed: true, lasting: true }
    }
    if (policy !== 'ask') return { allowed: false, lasting: false }
    const { id, tool, subject } = permission
    const ask = () => turn.ask({ id, tool, subject }, signal)
    asking += 1
    try {
      // The turn has one place to give up, however many tools it asks for at once.
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
