/**
 * The `acp` backend: any program that speaks the Agent Client Protocol, named by its command. All it knows of the
 * agent is what the protocol says; the engine (engine/acp) does the rest.
 */
import { childEnvironment } from '../../process/child-environment.ts'
import type { BackendContext, BackendDefinition, Validation } from '../backend.ts'
import { type AcpAgent, startAcpAgent } from '../engine/acp/acp-agent.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import { agentError } from '../engine/acp/acp-errors.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliKind, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { splitWords } from '../engine/cli/split-words.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import { type BackendOptions, badOption } from '../options.ts'

/** An agent that must be fetched first (npx) takes its time, and on a busy machine more. */
const GREETING_MS_MAX = 60_000

const kind: CliKind = {
  backend: 'acp',
  bin: '',
  modes: ['session'],
  asksIn: ['session'],
  cannot: ['bin', 'args', 'mode', 'max_turns', 'auth_token_file'],
}

export const acp: BackendDefinition = {
  name: 'acp',
  summary: 'any agent of the Agent Client Protocol, as one warm process with many sessions',
  options: cliOptions(kind, {
    cmd: "the agent's command, split into words as a shell does, e.g. npx -y @agentclientprotocol/claude-agent-acp; required",
  }),
  reportsTools: true,
  create(options, context) {
    const settings = readCliSettings(options, kind, context.log)
    const command = readCommand(options)
    return createAcpBackend(
      {
        backend: kind.backend,
        serves: 'workspace',
        settings,
        model: (turn) => chooseModel(settings.model, turn.model, 'kept'),
        command: () => command,
        environment: () => Promise.resolve({}),
        validate: (signal) => validateByGreeting(command, context, signal),
      },
      context,
    )
  },
}

function readCommand(options: BackendOptions): readonly [string, ...string[]] {
  const line = options.require('cmd')
  const [program, ...args] = splitWords(line) ?? []
  if (program !== undefined) return [program, ...args]
  throw badOption('cmd', line, 'a command: a quote is not closed, or nothing follows a backslash')
}

let probes = 0

/** Not every such program has a `--version`; but each must answer `initialize`, and none calls a model for it. */
async function validateByGreeting(
  command: readonly [string, ...string[]],
  { processes, environment, log, clock }: BackendContext,
  signal: AbortSignal,
): Promise<Validation> {
  probes += 1
  const facts = () => ({
    ...{ command: command.join(' '), timeout: '60s', outputBytesMax: OUTPUT_BYTES_MAX },
    nowMs: clock.nowMs(),
  })
  const spawning = {
    command,
    cwd: '/',
    env: childEnvironment(environment, {}),
    mark: `acp-probe-${process.pid}-${probes}`,
  }
  const agent = startAcpAgent({ processes, spawning, log, facts })
  const giveUp = () => void agent.stop()
  const cancelTimer = clock.after(GREETING_MS_MAX, giveUp)
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    return await validationOf(agent)
  } finally {
    cancelTimer()
    signal.removeEventListener('abort', giveUp)
    await agent.stop()
  }
}

async function validationOf({ greeting }: AcpAgent): Promise<Validation> {
  try {
    const { version, canLoad, canResume } = await greeting
    const note = canLoad || canResume ? undefined : 'it cannot load sessions: a conversation ends with its process'
    return { ok: true, ...(version !== undefined && { version }), ...(note !== undefined && { note }) }
  } catch (thrown) {
    return {
      ok: false,
      problem: `backend "acp": the agent does not answer initialize: ${agentError(thrown, 0).message}`,
      remedy: 'run the command by hand: it must be there, and speak the Agent Client Protocol on stdin and stdout',
    }
  }
}
