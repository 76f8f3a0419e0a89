/**
 * The backend of agents that are started once for each message, print JSON and keep their own sessions. Each agent is a
 * description: its arguments and a parser of its output, both pure. This file does the common part: the prompt with
 * files and instructions, the environment with the token, the process, its private files.
 * Invariant: the prompt is never on the command line.
 */
import { randomUUID } from 'node:crypto'
import { childEnvironment } from '../../../process/child-environment.ts'
import type { ProcessResult } from '../../../process/processes.ts'
import type { Backend, BackendContext, BackendEvent, Drift, McpServer, Turn } from '../../backend.ts'
import { agentEnvironment } from '../environment/agent-environment.ts'
import { type AgentTokenSource, readTokenVariables } from '../environment/agent-token.ts'
import type { ProcessFacts } from '../failure/agent-errors.ts'
import { promptWithFiles, writeAttachments } from '../files/attachments.ts'
import { createPrivateFolder } from '../files/private-folder.ts'
import { missingOptions } from '../probe/missing-options.ts'
import { withScratch } from '../probe/scratch.ts'
import { type ValidateCliOptions, validateCli } from '../probe/validate-cli.ts'
import { sessionPromptOf } from '../session-prompt.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../turn-engine.ts'
import { chooseModel } from './choose-model.ts'
import type { CliKind, CliSettings } from './cli-options.ts'
import { cliTurnWork } from './cli-turn.ts'

export interface OneShotAgent {
  readonly kind: CliKind
  /** How to install the program: a sentence without a full stop. */
  readonly install: string
  readonly auth: AgentTokenSource
  /** Whether its model names keep the provider (`provider/model`). */
  readonly modelPrefix: 'kept' | 'dropped'
  readonly args: (call: OneShotCall) => readonly string[]
  /** Variables for this program, besides its token. */
  readonly environment: (call: OneShotCall) => Readonly<Record<string, string>>
  readonly createParser: (options: AgentOutputParserOptions) => AgentOutputParser
  /** See `Backend`. */
  readonly mcpToolName?: Backend['mcpToolName'] & {}
  /** The arguments of each call that prints help on the options that `args` uses. */
  readonly help: readonly (readonly string[])[]
  /** The name of the file for the prompt; its path is then `call.promptFile`. Undefined: the prompt goes to stdin. */
  readonly promptFile?: string
  /** Waits until the program may run. The returned function is called when it has ended. */
  readonly enter?: (stream: TurnStream) => Promise<() => void>
}

/** The input for the arguments and the environment of one run. */
export interface OneShotCall {
  readonly settings: Pick<CliSettings, 'args' | 'permission' | 'allowedTools' | 'maxTurns'>
  readonly workingDir: string
  /** For programs whose caller names a new session: an id that was never used. */
  readonly newSessionId: string
  readonly model?: string | undefined
  readonly sessionId?: string | undefined
  readonly mcpServers: readonly McpServer[]
  readonly promptFile: string
}

export interface AgentOutputParserOptions {
  readonly backend: string
  readonly sessionId?: string | undefined
  /** The session token to store for a session that the program names. */
  readonly token: (sessionId: string) => string
  readonly facts: ProcessFacts
}

/** Contract: one parser for each run. `conclude` is called only if no line had an end event. */
export interface AgentOutputParser {
  read(line: string): readonly BackendEvent[]
  /** Reads a line of stderr. */
  readError?(line: string): readonly BackendEvent[]
  conclude(result: ProcessResult, stdout: string): EndEvent
}

export function createOneShotBackend(agent: OneShotAgent, settings: CliSettings, context: BackendContext): Backend {
  const { clock } = context
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  return {
    name: agent.kind.backend,
    mcpToolName: agent.mcpToolName,
    stallMs: settings.timeoutMs,
    validate: (signal) => validateCli(validateCliOptionsOf(agent, settings, context), signal),
    run: (turn, signal) =>
      turns.run((stream) => runOneShotTurn({ agent, settings, context }, turn, stream), signal, turn.onWait),
    probe: (signal) => probeOptions({ agent, settings, context }, signal),
    close: () => turns.close(),
  }
}

/** A call with every optional value set, so that `args` gives every option. */
const PROBE_CALL = { workingDir: '/', newSessionId: 'x', promptFile: 'x', model: 'x', sessionId: 'x', mcpServers: [] }

async function probeOptions(
  { agent, settings, context }: OneShotContext,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  const { bin, timeout } = settings
  const args = (['allowed_tools', 'bypass'] as const).flatMap((permission) =>
    agent.args({ ...PROBE_CALL, settings: { args: [], allowedTools: ['x'], maxTurns: 1, permission } }),
  )
  const input = {
    processes: context.processes,
    args,
    commands: agent.help.map((help) => [bin, ...help] as const),
    facts: { command: bin, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() },
  }
  const isolation = agent.kind.isolation ?? { stateIn: [] }
  return withScratch({ context, isolation }, (scratch) => missingOptions(input, scratch), signal)
}

export function validateCliOptionsOf(
  { kind, install }: Pick<OneShotAgent, 'kind' | 'install'>,
  { bin }: CliSettings,
  { processes, environment }: BackendContext,
): ValidateCliOptions {
  const env = childEnvironment(environment, {})
  return { backend: kind.backend, bin, install, processes, env, isolation: kind.isolation }
}

interface OneShotContext {
  readonly agent: OneShotAgent
  readonly settings: CliSettings
  readonly context: BackendContext
}

async function runOneShotTurn(
  { agent, settings, context }: OneShotContext,
  turn: Turn,
  stream: TurnStream,
): Promise<EndEvent> {
  const { clock, environment, processes, outbound } = context
  const { workingDir } = turn
  const options = { workingDir, turnId: turn.id, clock, outbound }
  const attached = await writeAttachments(turn.request.parts, options, stream.signal)
  const sessionPrompt = sessionPromptOf({ ...turn, prompt: promptWithFiles(turn.prompt, attached.promptLines) })
  const folder = createPrivateFolder()
  let leave: (() => void) | undefined
  try {
    leave = await agent.enter?.(stream)
    const call: OneShotCall = {
      settings,
      workingDir,
      newSessionId: randomUUID(),
      model: chooseModel(settings.model, turn.model, agent.modelPrefix),
      sessionId: sessionPrompt.sessionId,
      mcpServers: [...turn.mcpServers, ...settings.mcpServers],
      promptFile: agent.promptFile === undefined ? '' : folder.write(agent.promptFile, sessionPrompt.prompt),
    }
    const token = await readTokenVariables(agent.auth, environment, settings.authTokenFile)
    const own = { ...token, ...agent.environment(call) }
    const work = cliTurnWork(processes, {
      run: {
        command: [settings.bin, ...agent.args(call)],
        cwd: workingDir,
        env: agentEnvironment(turn, { context, mode: 'oneshot', passMeta: settings.passMeta, own }),
        mark: turn.id,
      },
      input: agent.promptFile === undefined ? sessionPrompt.prompt : '',
      ...agent.createParser(parserOptionsOf(agent, settings, { ...sessionPrompt, nowMs: clock.nowMs() })),
    })
    return await work(stream)
  } finally {
    leave?.()
    folder.remove()
  }
}

function parserOptionsOf(
  { kind }: OneShotAgent,
  { bin, timeout }: CliSettings,
  { sessionId, token, nowMs }: { sessionId?: string; token: AgentOutputParserOptions['token']; nowMs: number },
): AgentOutputParserOptions {
  const facts = { command: bin, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs }
  return { backend: kind.backend, sessionId, token, facts }
}
