/**
 * The `claude-code` backend, the default: the user's own `claude`, kept warm (one process per conversation, see
 * warm-turn.ts) or started once per message (`mode=oneshot`). claude keeps the memory; our session token is its session
 * id. args.ts has the flags, parse.ts reads the output, outcome.ts makes the end.
 */
import type { RunningProcess } from '../../process/processes.ts'
import type { Backend, BackendContext, BackendDefinition, Drift, Turn, Validation } from '../backend.ts'
import { type CliKind, type CliSettings, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { driftIn } from '../engine/failure/drift.ts'
import { writeAttachments } from '../engine/files/attachments.ts'
import { createPrivateFolder } from '../engine/files/private-folder.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../engine/turn-engine.ts'
import { createWarmPool, type WarmLaunch } from '../engine/warm/warm-pool.ts'
import { runWarmTurn } from '../engine/warm/warm-turn.ts'
import { costBefore, runOneShot } from './one-shot.ts'
import { ROOT_BYPASS_REMEDY } from './outcome.ts'
import { LINE_BYTES_MAX } from './parse.ts'
import { denyBetweenTurns } from './permission.ts'
import { probeClaude } from './probe.ts'
import { createClaudeProgram, NEWEST_TESTED, OLDEST_TESTED } from './program.ts'
import {
  type ClaudeContext,
  commandOf,
  environmentOf,
  factsOf,
  KILL_GRACE_MS,
  matchOf,
  planStart,
  type StartPlan,
  withoutOuterClaude,
} from './start-plan.ts'
import { runText } from './text-mode.ts'
import { type ClaudeAgent, runClaudeTurn } from './warm-turn.ts'

const KIND: CliKind = {
  backend: 'claude-code',
  bin: 'claude',
  modes: ['session', 'oneshot', 'text'],
  asksIn: ['session'],
  maxTurnsDefault: 25,
  cannot: [],
  isolation: {
    stateIn: ['CLAUDE_CONFIG_DIR'],
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  },
}

export const claudeCode: BackendDefinition = {
  name: KIND.backend,
  summary: 'Claude Code: the claude on this machine, kept warm, with a session for each conversation',
  options: cliOptions(KIND, {
    bin: 'the program (claude)',
    max_turns: 'how many steps a turn may take (25)',
    mode: 'session: one warm process per conversation (default); oneshot: one claude -p per message; text: bin -p args, stdin to stdout',
  }),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  tested: NEWEST_TESTED,
  testedFrom: OLDEST_TESTED,
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createClaude(settings, context),
    ),
}

function createClaude(settings: CliSettings, context: BackendContext): Backend {
  const { clock, processes, environment: env } = context
  const isWarm = settings.mode === 'session'
  const warm = createWarmPool<ClaudeAgent>({
    processesMax: settings.warmMax,
    idleMs: settings.warmIdleMs,
    clock,
    turnsPerProcessMax: 1,
  })
  const install = 'install it with `npm install -g @anthropic-ai/claude-code`'
  const program = createClaudeProgram({
    processes,
    env,
    backend: KIND.backend,
    bin: settings.bin,
    install,
    isolation: KIND.isolation,
  })
  const claude: ClaudeContext = { settings, context, program, warm }
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: maxTimeMs(settings) })
  return {
    name: KIND.backend,
    ...(settings.mode !== 'text' && { mcpToolName: (server, tool) => `mcp__${server}__${tool}` }),
    // A one-shot prints nothing before its end, so its timeout limits the whole turn (maxTimeMs).
    ...(isWarm && settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: (signal) => validate(claude, signal),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, claude, stream), signal, turn.onWait),
    probe: (signal) => probe(claude, signal),
    limits: program.limits,
    async close() {
      await Promise.all([turns.close(), program.close()])
      await warm.close()
    },
  }
}

function maxTimeMs({ mode, timeoutMs, maxTimeMs: most }: CliSettings): number | undefined {
  const limits = [most, mode === 'oneshot' ? timeoutMs : undefined].filter((limit) => limit !== undefined)
  return limits.length === 0 ? undefined : Math.min(...limits)
}

async function validate({ settings, context, program }: ClaudeContext, signal: AbortSignal): Promise<Validation> {
  const isRoot = process.getuid?.() === 0
  if (settings.permission === 'bypass' && isRoot && context.environment['IS_SANDBOX'] !== '1') {
    return {
      ok: false,
      problem: `backend "${KIND.backend}" (${settings.bin}): permission is bypass`,
      remedy: ROOT_BYPASS_REMEDY,
    }
  }
  return program.validate(signal)
}

async function probe(claude: ClaudeContext, signal: AbortSignal): Promise<readonly Drift[]> {
  const { settings, context, program } = claude
  // It gets no argument of ours.
  if (settings.mode === 'text') return []
  const environment = withoutOuterClaude(context.environment)
  const probeOptions = { context: { ...context, environment }, settings, isolation: KIND.isolation ?? { stateIn: [] } }
  return probeClaude({ ...probeOptions, program, facts: factsOf(claude) }, signal)
}

async function runTurn(turn: Turn, claude: ClaudeContext, stream: TurnStream): Promise<EndEvent> {
  const { context } = claude
  const { workingDir, id: turnId } = turn
  const attachments = { workingDir, turnId, outbound: context.outbound, clock: context.clock }
  const { promptLines } = await writeAttachments(turn.request.parts, attachments, stream.signal)
  const prompt = [turn.prompt, ...promptLines].join('\n')
  for (;;) {
    const plan = await planStart(turn, claude, stream.signal)
    const end = await runPlanned(plan, prompt, stream)
    const left = end.type === 'failed' ? claude.program.leaveOut(driftIn(end.error), plan.features) : undefined
    if (left === undefined || stream.signal.aborted) return end
    // claude ended while it read its options, so it has not seen the message.
    context.log.warn({ backend: KIND.backend, missing: left.missing }, `claude: ${left.missing}; ${left.instead}`)
    stream.emit({ type: 'status', text: `claude: ${left.missing}; ${left.instead}` })
  }
}

async function runPlanned(plan: StartPlan, prompt: string, stream: TurnStream): Promise<EndEvent> {
  const { claude, turn, model } = plan
  const { settings, context, warm } = claude
  if (settings.mode === 'oneshot') return runOneShot(plan, prompt, stream)
  if (settings.mode === 'text') return runText(plan, prompt, stream)
  const { allowedTools } = settings
  const options = { turn, prompt, model, allowedTools, facts: () => factsOf(claude), clock: context.clock }
  const launch = launchOf(plan)
  return runWarmTurn({ warm, clock: context.clock, key: turn.conversationId, launch }, stream, (warmAgent) =>
    runClaudeTurn(warmAgent, options, stream),
  )
}

function launchOf(plan: StartPlan): WarmLaunch<ClaudeAgent> {
  return { ...matchOf(plan), start: () => startAgent(plan) }
}

function startAgent(plan: StartPlan): ClaudeAgent {
  const { claude, turn, session } = plan
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
    sessionId: session?.id,
    costUsd: costBefore(plan),
    listener: undefined,
    exit: undefined,
    hasStarted: false,
    log,
  }
  return agent
}
