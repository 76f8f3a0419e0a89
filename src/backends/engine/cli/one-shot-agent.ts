/**
 * Agents that are started once a message, print JSON and keep sessions of their own, each as a description: its
 * arguments, and a reader of what it prints, both pure. Here is what they have in common: the prompt with its files and
 * instructions, the environment with its token, the process, the files that only it may read. Invariant: the prompt is
 * never on the command line.
 */
import { randomUUID } from 'node:crypto'
import { childEnvironment } from '../../../process/child-environment.ts'
import type { ProcessResult } from '../../../process/processes.ts'
import type { Backend, BackendContext, BackendEvent, Drift, McpServer, Turn } from '../../backend.ts'
import { agentEnvironment } from '../environment/agent-environment.ts'
import { type AgentTokenSource, readTokenVariables } from '../environment/agent-token.ts'
import type { ProcessFacts } from '../failure/agent-errors.ts'
import { writeAttachments } from '../files/attachments.ts'
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
  /** How to get the program, in a sentence without its end. */
  readonly install: string
  readonly auth: AgentTokenSource
  /** Whether its models are named with their provider in front. */
  readonly modelPrefix: 'kept' | 'dropped'
  readonly args: (call: OneShotCall) => readonly string[]
  /** Of the program alone, besides its token. */
  readonly environment: (call: OneShotCall) => Readonly<Record<string, string>>
  readonly createParser: (reading: AgentOutputParserOptions) => AgentOutputParser
  /** What prints help on the options that `args` gives, after the program's name. */
  readonly help: readonly (readonly string[])[]
  /** Where the prompt goes; undefined = stdin. The path of its file is then `call.promptFile`. */
  readonly promptFile?: string
}

/** All that the arguments and the environment of one run are made of. */
export interface OneShotCall {
  readonly settings: Pick<CliSettings, 'args' | 'permission' | 'allowedTools' | 'maxTurns'>
  readonly workingDir: string
  /** For programs whose sessions are named by whoever begins them; nobody has used it before. */
  readonly newSessionId: string
  readonly model?: string | undefined
  readonly sessionId?: string | undefined
  readonly mcpServers: readonly McpServer[]
  readonly promptFile: string
}

/** What a reader needs to put what it reads into our words. */
export interface AgentOutputParserOptions {
  readonly backend: string
  readonly sessionId?: string | undefined
  /** The token to keep for a session that the program names. */
  readonly token: (sessionId: string) => string
  readonly facts: ProcessFacts
}

/** Contract: one for each run; `conclude` is asked only where no line was an end. */
export interface AgentOutputParser {
  read(line: string): readonly BackendEvent[]
  conclude(result: ProcessResult, stdout: string): EndEvent
}

export function createOneShotBackend(agent: OneShotAgent, settings: CliSettings, context: BackendContext): Backend {
  const { clock } = context
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.maxTimeMs })
  return {
    name: agent.kind.backend,
    ...(settings.timeoutMs !== undefined && { stallMs: settings.timeoutMs }),
    validate: (signal) => validateCli(validateCliOptionsOf(agent, settings, context), signal),
    run: (turn, signal) => turns.run((stream) => runOneShotTurn({ agent, settings, context, turn, stream }), signal),
    probe: (signal) => probeOptions({ agent, settings, context }, signal),
    close: () => turns.close(),
  }
}

/** Everything that a turn may give it. */
const PROBE_CALL = { workingDir: '/', newSessionId: 'x', promptFile: 'x', model: 'x', sessionId: 'x', mcpServers: [] }

async function probeOptions(given: Described, signal: AbortSignal): Promise<readonly Drift[]> {
  const { agent, settings, context } = given
  const { bin, timeout } = settings
  const words = (['allowed_tools', 'bypass'] as const).flatMap((permission) =>
    agent.args({ ...PROBE_CALL, settings: { args: [], allowedTools: ['x'], maxTurns: 1, permission } }),
  )
  const question = {
    ...{ processes: context.processes, words, commands: agent.help.map((help) => [bin, ...help] as const) },
    facts: { command: bin, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() },
  }
  const quiet = agent.kind.quiet ?? { stateIn: [] }
  return withScratch({ context, quiet }, (scratch) => missingOptions(question, scratch), signal)
}

/** The question for `validateCli`. */
export function validateCliOptionsOf(
  { kind, install }: Pick<OneShotAgent, 'kind' | 'install'>,
  { bin }: CliSettings,
  { processes, environment }: BackendContext,
): ValidateCliOptions {
  const env = childEnvironment(environment, {})
  return { backend: kind.backend, bin, install, processes, env, quiet: kind.quiet }
}

interface Described {
  readonly agent: OneShotAgent
  readonly settings: CliSettings
  readonly context: BackendContext
}

interface Performance extends Described {
  readonly turn: Turn
  readonly stream: TurnStream
}

async function runOneShotTurn({ agent, settings, context, turn, stream }: Performance): Promise<EndEvent> {
  const { clock, environment, processes, outbound } = context
  const { workingDir } = turn
  const options = { workingDir, turnId: turn.id, clock, outbound }
  const attached = await writeAttachments(turn.request.parts, options, stream.signal)
  const opening = sessionPromptOf({ ...turn, prompt: promptWithFiles(turn.prompt, attached.promptLines) })
  const folder = createPrivateFolder()
  try {
    const call: OneShotCall = {
      settings,
      workingDir,
      newSessionId: randomUUID(),
      model: chooseModel(settings.model, turn.model, agent.modelPrefix),
      sessionId: opening.sessionId,
      mcpServers: [...turn.mcpServers, ...settings.mcpServers],
      promptFile: agent.promptFile === undefined ? '' : folder.write(agent.promptFile, opening.prompt),
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
      input: agent.promptFile === undefined ? opening.prompt : '',
      ...agent.createParser(parserOptionsOf(agent, settings, { ...opening, nowMs: clock.nowMs() })),
    })
    return await work(stream)
  } finally {
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

/** The prompt, and below it the files that came with it. */
export function promptWithFiles(prompt: string, promptLines: readonly string[]): string {
  return promptLines.length === 0 ? prompt : `${prompt}\n\n${promptLines.join('\n')}`
}
