/**
 * The `codex` backend: OpenAI's Codex CLI, kept warm as an app server, or `codex exec` once per message. One app server
 * per conversation, because its tools inherit that conversation's environment and a cancel must reach only its tools.
 */
import { childEnvironment } from '../../process/child-environment.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import {
  type CliKind,
  type CliSettings,
  cliOptions,
  readCliSettings,
  warnUnsupportedOption,
} from '../engine/cli/cli-options.ts'
import { cliTurnWork } from '../engine/cli/cli-turn.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { environmentAdditions } from '../engine/environment/agent-environment.ts'
import { type AgentTokenSource, readTokenVariables } from '../engine/environment/agent-token.ts'
import type { ProcessFacts } from '../engine/failure/agent-errors.ts'
import { writeAttachments } from '../engine/files/attachments.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../engine/turn-engine.ts'
import { createWarmPool, type WarmPool } from '../engine/warm/warm-pool.ts'
import { runWarmTurn } from '../engine/warm/warm-turn.ts'
import { type AppServer, startAppServer } from './app-server.ts'
import { appServerCommand, type CodexMcpServer, execCommand, mcpConfig, mcpVariables } from './args.ts'
import { openaiKeyOf } from './login.ts'
import { createExecParser } from './parse.ts'
import { createProtocolCheck, type ProtocolCheck, probeExec, probeProtocol } from './probe.ts'
import { instructionsHash, promptFor, readSession } from './session.ts'
import { runCodexTurn } from './warm-turn.ts'

const KIND: CliKind = {
  backend: 'codex',
  bin: 'codex',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  // codex has no limit of steps.
  cannot: ['max_turns'],
  isolation: {
    stateIn: ['CODEX_HOME'],
    files: { 'config.toml': 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n' },
  },
}

const TESTED = '0.166.0'

export const codex: BackendDefinition = {
  name: 'codex',
  summary: "OpenAI's Codex CLI, kept warm between messages or started once per message",
  options: cliOptions(KIND, {
    allowed_tools:
      'tools that need no permission: shell, apply_patch, mcp__<server>, mcp__<server>__<tool> (in mode session)',
  }),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  tested: TESTED,
  create(options, context) {
    const settings = readCliSettings(options, KIND, context.log)
    if (settings.mode === 'oneshot' && settings.allowedTools.length > 0 && settings.permission !== 'bypass') {
      warnUnsupportedOption(context.log, 'codex', {
        option: 'allowed_tools',
        why: 'in mode oneshot codex has no list of tools; its sandbox (workspace-write) limits it',
      })
    }
    return withOneShotFallback(settings, context.log, (chosen) => createCodex(chosen, context))
  },
}

const AUTH: AgentTokenSource = { variable: 'CODEX_API_KEY', from: ['CODEX_API_KEY'], instead: [] }

interface CodexContext extends BackendContext {
  readonly settings: CliSettings
  readonly warm: WarmPool<AppServer>
  readonly protocol: ProtocolCheck
}

function createCodex(settings: CliSettings, context: BackendContext): Backend {
  const { clock, processes } = context
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  const warm = createWarmPool<AppServer>({
    processesMax: settings.warmMax,
    idleMs: settings.warmIdleMs,
    clock,
    turnsPerProcessMax: 1,
  })
  const probeOptions = { context, settings, isolation: KIND.isolation ?? { stateIn: [] } }
  const protocol = createProtocolCheck(probeOptions, TESTED)
  const codexContext: CodexContext = { ...context, settings, warm, protocol }
  const env = childEnvironment(context.environment, {})
  const probe = {
    processes,
    env,
    backend: codex.name,
    bin: settings.bin,
    install: 'install it with `npm i -g @openai/codex`',
    isolation: KIND.isolation,
  }
  const [work, probeWork] = settings.mode === 'session' ? [runAppServerTurn, probeProtocol] : [runOneShot, probeExec]
  return {
    name: codex.name,
    mcpToolName: (server, tool) => `mcp__${server}__${tool}`,
    stallMs: settings.timeoutMs,
    validate: (signal) => validateCli(probe, signal),
    run: (turn, signal) => turns.run((stream) => work(turn, codexContext, stream), signal, turn.onWait),
    probe: (signal) => probeWork(probeOptions, signal),
    async close() {
      await Promise.all([turns.close(), protocol.close()])
      await warm.close()
    },
  }
}

async function runOneShot(turn: Turn, codexContext: CodexContext, stream: TurnStream): Promise<EndEvent> {
  const prompt = await promptOf(turn, codexContext, stream.signal)
  const { settings, processes, log } = codexContext
  const session = readSession(turn.sessionToken)
  const servers = serversOf(turn, settings)
  const command = execCommand({
    settings,
    workingDir: turn.workingDir,
    model: modelOf(turn, settings),
    thread: session?.thread,
    systemPrompt: turn.systemPrompt,
    mcpServers: servers,
  })
  const warn = (words: string) => log.debug({ workspace: turn.request.workspace_id, words }, 'codex warns')
  const instructions = instructionsHash(turn.systemPrompt)
  const parser = createExecParser({ session, instructions, facts: factsOf(codexContext), warn })
  const env = childEnvironment(codexContext.environment, await additionsFor(turn, codexContext, mcpVariables(servers)))
  const run = { command, cwd: turn.workingDir, env, mark: turn.id }
  const input = promptFor(prompt, turn.systemPrompt, session)
  return cliTurnWork(processes, { run, input, read: parser.read, conclude: parser.conclude })(stream)
}

async function runAppServerTurn(turn: Turn, codexContext: CodexContext, stream: TurnStream): Promise<EndEvent> {
  const prompt = await promptOf(turn, codexContext, stream.signal)
  const { settings, warm, clock, processes, log } = codexContext
  const additions = await additionsFor(turn, codexContext, {})
  const apiKey = additions[AUTH.variable]
  const command = appServerCommand(settings, apiKey !== undefined)
  const config = mcpConfig(serversOf(turn, settings))
  const threadParams = { cwd: turn.workingDir, ...permissionParams(settings), config }
  const launch = {
    // Without the inherited environment: it is the same for every turn of this backend.
    fingerprint: JSON.stringify([command, additions, threadParams]),
    start: () =>
      startAppServer({
        processes,
        spawning: {
          command,
          cwd: turn.workingDir,
          env: childEnvironment(codexContext.environment, additions),
          mark: turn.id,
        },
        facts: () => factsOf(codexContext),
        log,
        apiKey,
      }),
  }
  return runWarmTurn({ warm, clock, key: turn.conversationId, launch }, stream, (warmAgent) =>
    runCodexTurn(
      {
        turn,
        prompt,
        warmAgent,
        model: modelOf(turn, settings),
        threadParams,
        permissions: { allowedTools: settings.allowedTools, asks: settings.permission === 'ask' },
        checkProtocol: codexContext.protocol.check,
        nowMs: () => clock.nowMs(),
        log,
      },
      stream,
    ),
  )
}

/** The prompt, with the attached files of the working folder named below it. */
async function promptOf(turn: Turn, { outbound, clock }: CodexContext, signal: AbortSignal): Promise<string> {
  const { workingDir, id: turnId } = turn
  const { promptLines } = await writeAttachments(turn.request.parts, { workingDir, turnId, outbound, clock }, signal)
  return [turn.prompt, ...promptLines].join('\n')
}

/** Without bypass codex asks before every command that is not known to be harmless, and keeps its sandbox. */
function permissionParams({ permission }: CliSettings) {
  if (permission === 'bypass') return { approvalPolicy: 'never', sandbox: 'danger-full-access' } as const
  return { approvalPolicy: 'untrusted', sandbox: 'workspace-write' } as const
}

/** The servers of the turn and of the owner. If two have one name, the turn's server wins. */
function serversOf(turn: Turn, settings: CliSettings): readonly CodexMcpServer[] {
  const own = turn.mcpServers.map((server) => ({ ...server, trusted: true }))
  const others = settings.mcpServers.filter(({ name }) => !own.some((server) => server.name === name))
  return [...own, ...others.map((server) => ({ ...server, trusted: false }))]
}

const modelOf = (turn: Turn, settings: CliSettings) => chooseModel(settings.model, turn.model, 'dropped')

async function additionsFor(turn: Turn, codexContext: CodexContext, more: Readonly<Record<string, string>>) {
  const { settings, environment } = codexContext
  const auth = await readTokenVariables(AUTH, environment, settings.authTokenFile)
  const token = auth[AUTH.variable] ?? openaiKeyOf(environment)
  // A custom provider reads the key from the other variable.
  const both: Readonly<Record<string, string>> =
    token !== undefined && !environment['OPENAI_API_KEY'] ? { OPENAI_API_KEY: token } : {}
  const { mode, passMeta } = settings
  return environmentAdditions(turn, {
    mode,
    passMeta,
    own: { ...more, ...(token !== undefined && { [AUTH.variable]: token }), ...both },
  })
}

function factsOf({ settings, clock }: CodexContext): ProcessFacts {
  const { bin, timeout } = settings
  return { command: bin, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: clock.nowMs() }
}
