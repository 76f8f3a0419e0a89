/**
 * The engine of every agent that speaks ACP: one warm process for a workspace, with a session for each conversation, or
 * a process a conversation for agents whose commands are to know whose they are. Sessions outlive the process where the
 * agent can load them. A cancelled turn that was alone in the process takes
 * what its tools left running with it; where others run beside it, nobody can tell whose child is whose, so the process
 * gets no new turns and ends with the last of them. Invariant: a turn never runs in a session of another conversation.
 */
import { sleep } from '../../../clock.ts'
import { toMoleculeError } from '../../../errors.ts'
import { childEnvironment } from '../../../process/environment.ts'
import type { Backend, BackendContext, Turn } from '../../backend.ts'
import { abortable } from '../abortable.ts'
import { additionsOf } from '../agent-environment.ts'
import { writeAttachments } from '../attachments.ts'
import { type CliSettings, warnOf } from '../cli-options.ts'
import { withFiles } from '../line-agent.ts'
import { openTurn } from '../opening.ts'
import { createTurns, type EndEvent, OUTPUT_BYTES_MAX, type Telling } from '../turns.ts'
import { createWarm, type Launch, type Warm, type WarmLease } from '../warm.ts'
import { type Worked, warmTurn } from '../warm-turn.ts'
import { type AcpAgent, startAcpAgent } from './agent.ts'
import { type AcpPermission, isAllowed, isOfServers } from './permission.ts'
import { factsOf, type Looked, probeAcp } from './probe.ts'
import { runPrompt, type Verdict } from './prompt.ts'
import { openSession } from './session.ts'
import { createStarts, type Starts } from './starts.ts'

export interface AcpLimits {
  /** Turns at once in one process; more wait. */
  readonly turnsMax: number
  /** Sessions that one process may hold; with more it is replaced when its turns have ended. */
  readonly sessionsMax: number
}

const LIMITS: AcpLimits = { turnsMax: 64, sessionsMax: 500 }
/** Of one conversation; in a process that all share it would be everybody's. MCP servers get it, session by session. */
const OF_ONE_CONVERSATION = 'MOLECULE_WORKSPACE_TOKEN'

/** What is the program's own. */
export interface AcpProgram extends Looked {
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
  const turns = createTurns({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  const warm = createWarm<DrivenAgent>({
    max: settings.warmMax,
    idleMs: settings.warmIdleMs,
    clock,
    sessionsMax: program.serves === 'workspace' ? limits.turnsMax : 1,
  })
  const starts = program.sweepsAtStart === true ? createStarts(clock) : undefined
  const house: House = { program, context, limits, warm, starts, generation: 0, warnedOf: new Set() }
  return {
    name: backend,
    ...(settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: program.validate,
    run: (turn, signal) => turns.run((telling) => perform(house, turn, telling), signal),
    ...(quiet !== undefined && { probe: (signal) => probeAcp({ ...program, quiet }, context, signal) }),
    async close() {
      await Promise.all([turns.close(), warm.close()])
    },
  }
}

/** An agent, and the generation of processes that it is of. */
interface DrivenAgent extends AcpAgent {
  readonly generation: number
}

interface House {
  readonly program: AcpProgram
  readonly context: BackendContext
  readonly limits: AcpLimits
  readonly warm: Warm<DrivenAgent>
  readonly starts: Starts | undefined
  /** Raised when the process shall have a successor for new turns; a backend is of one workspace. */
  generation: number
  /** What has been warned of already: it would be the same with every turn. */
  readonly warnedOf: Set<string>
}

async function perform(house: House, turn: Turn, telling: Telling): Promise<EndEvent> {
  const { program, context, warm } = house
  const { clock, outbound } = context
  const { workingDir } = turn
  const options = { workingDir, turnId: turn.id, clock, outbound }
  const { promptLines } = await writeAttachments(turn.request.parts, options, telling.signal)
  const launch = await launchOf(house, turn)
  const key = program.serves === 'workspace' ? turn.request.workspace_id : turn.conversationId
  const prompt = withFiles(turn.prompt, promptLines)
  return warmTurn({ warm, clock, key, launch }, telling, (lease) =>
    workOn(house, lease, { turn: { ...turn, prompt }, telling, model: program.model(turn) }),
  )
}

let launches = 0

async function launchOf({ program, context, starts, generation }: House, turn: Turn): Promise<Launch<DrivenAgent>> {
  const { processes, log, clock } = context
  const { settings, backend } = program
  const own = await program.environment()
  const additions = additionsOf(turn, { mode: 'session', passMeta: settings.passMeta, own })
  if (program.serves === 'workspace') delete additions[OF_ONE_CONVERSATION]
  const command = program.command(program.model(turn))
  const cwd = turn.workingDir
  return {
    // What is inherited is the same for every turn of this backend.
    fingerprint: JSON.stringify([command, cwd, additions, generation]),
    start: () => {
      launches += 1
      const env = childEnvironment(context.environment, additions)
      const spawning = { command, cwd, env, mark: `${backend}-${process.pid}-${launches}` }
      const facts = () => factsOf(program, command[0], clock.nowMs())
      const agent = startAcpAgent({ processes, spawning, log, facts })
      starts?.note(agent.greeting)
      return { ...agent, generation }
    },
  }
}

/** New turns get another process; those that run here go on, and it ends with the last of them. */
function retire(house: House, { generation }: DrivenAgent): void {
  if (generation === house.generation) house.generation += 1
}

interface Work {
  readonly turn: Turn
  readonly telling: Telling
  readonly model: string | undefined
}

async function workOn(house: House, lease: WarmLease<DrivenAgent>, work: Work): Promise<Worked> {
  const { agent } = lease
  const { signal } = work.telling
  let isGreeted = false
  await untilQuiet(agent)
  agent.turns += 1
  try {
    await abortable(agent.greeting, signal)
    isGreeted = true
    const { end, hasStopped, since } = await prompted(house, lease, work)
    return await leftBehind(house, lease, { ...work, end, hasStopped, since })
  } catch (thrown) {
    const end: EndEvent = { type: 'failed', error: toMoleculeError(thrown) }
    // Before a prompt was taken. One that does not even greet, or hangs over a session, is of no use to anybody.
    if (signal.aborted) return leftBehind(house, lease, { ...work, end, hasStopped: false, since: 0 })
    return { end, isUsable: isGreeted }
  } finally {
    agent.turns -= 1
  }
}

async function prompted(house: House, lease: WarmLease<DrivenAgent>, { turn, telling, model }: Work) {
  const { program, context } = house
  const { agent } = lease
  const { settings, backend } = program
  const opening = openTurn(turn)
  const nowMs = context.clock.nowMs()
  const wish = {
    sessionId: opening.sessionId,
    cwd: turn.workingDir,
    mcpServers: [...turn.mcpServers, ...settings.mcpServers],
    model: program.modelByCommand ? undefined : model,
    nowMs,
    onModelRefused: (why: string) => warnOnce(house, { option: 'model', why }),
  }
  if (opening.sessionId === undefined || !agent.sessions.has(opening.sessionId)) {
    await untilLoadable(house, opening.begunMs, telling)
    await house.starts?.over(telling.signal)
  }
  const sessionId = await openSession(agent, wish, telling.signal)
  const begunMs = sessionId === opening.sessionId ? opening.begunMs : context.clock.nowMs()
  const token = opening.token(sessionId, program.loadableFromMs === undefined ? undefined : begunMs)
  telling.emit({ type: 'session', token })
  const since = agent.running.moment()
  const decide = decider(house, lease, { turn, telling })
  const given = { backend, sessionId, text: opening.prompt, nowMs, decide }
  return { ...(await runPrompt(agent, given, telling)), since }
}

async function untilLoadable({ program, context }: House, begunMs: number | undefined, telling: Telling) {
  if (begunMs === undefined || program.loadableFromMs === undefined) return
  const waitMs = program.loadableFromMs(begunMs) - context.clock.nowMs()
  if (waitMs <= 0) return
  const seconds = Math.ceil(waitMs / 1000)
  telling.emit({ type: 'status', text: `${program.backend} can load this session in ${seconds} s` })
  await sleep(context.clock, waitMs, telling.signal)
}

interface Left extends Work {
  readonly end: EndEvent
  readonly hasStopped: boolean
  readonly since: number
}

/** What becomes of the process, and of what a cancelled turn left running in it. */
async function leftBehind(house: House, { agent }: WarmLease<DrivenAgent>, left: Left): Promise<Worked> {
  const { telling, end, hasStopped, since } = left
  const isCancelled = telling.signal.aborted
  const isAlone = agent.turns === 1
  if (agent.sessions.size > house.limits.sessionsMax || (isCancelled && !isAlone)) retire(house, agent)
  if (!isCancelled || !isAlone) return { end, isUsable: true }
  if (!hasStopped) return { end, isUsable: false }
  // New turns wait, or what they start would be taken for a remnant of this one.
  const cleaning = agent.running.stopChildrenSince(since)
  agent.quiet = cleaning
  return { end, isUsable: await cleaning }
}

/** Another may have begun to clean up while we waited for the one before. */
async function untilQuiet(agent: AcpAgent): Promise<void> {
  for (let seen: unknown; seen !== agent.quiet; ) {
    seen = agent.quiet
    await seen
  }
}

/** By the owner's settings; where those say so, by a person, for this once. */
function decider({ program }: House, lease: WarmLease<DrivenAgent>, { turn, telling }: Pick<Work, 'turn' | 'telling'>) {
  const { permission: policy, allowedTools } = program.settings
  let asking = 0
  return async (permission: AcpPermission, signal: AbortSignal): Promise<Verdict> => {
    if (policy === 'bypass' || isAllowed(permission, allowedTools) || isOfServers(permission, turn.mcpServers)) {
      return { allowed: true, lasting: true }
    }
    if (policy !== 'ask') return { allowed: false, lasting: false }
    const { id, tool, subject } = permission
    const ask = () => turn.ask({ id, tool, subject }, signal)
    asking += 1
    try {
      // The turn has one place to give up, however many tools it asks for at once.
      const decision = await telling.paused(asking === 1 ? lease.suspended(ask, signal) : ask())
      return { allowed: decision === 'allowed', lasting: false }
    } finally {
      asking -= 1
    }
  }
}

function warnOnce({ program, context, warnedOf }: House, { option, why }: { option: string; why: string }): void {
  if (warnedOf.has(option)) return
  warnedOf.add(option)
  warnOf(context.log, program.backend, { option, why })
}
