/**
 * The `acp` backend: any program that speaks the Agent Client Protocol, given by its command. It knows nothing of the
 * agent but the protocol; engine/acp does the work.
 */
import { childEnvironment } from '../../process/child-environment.ts'
import type { BackendContext, BackendDefinition, Validation } from '../backend.ts'
import { greetOnce } from '../engine/acp/acp-agent.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import { agentError } from '../engine/acp/acp-errors.ts'
import { authAdvice } from '../engine/acp/auth-method.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliKind, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { splitWords } from '../engine/cli/split-words.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import { type BackendOptions, badOption } from '../options.ts'

/** Enough for an agent that npx downloads first, on a busy machine. After it, validation fails. */
const GREETING_MS_MAX = 60_000

/** claude-agent-acp repeats a refused call ten times, also a 401, and is silent for minutes. The runtime does the retries. */
const CLAUDE_RETRIES = 'CLAUDE_CODE_MAX_RETRIES'

const KIND: CliKind = {
  backend: 'acp',
  bin: '',
  modes: ['session'],
  asksIn: ['session'],
  cannot: ['bin', 'args', 'mode', 'max_turns', 'auth_token_file'],
}

export const acp: BackendDefinition = {
  name: 'acp',
  summary: 'any agent that speaks the Agent Client Protocol, as one warm process with many sessions',
  options: cliOptions(KIND, {
    auth_method: 'the id of the login method to call after the start, for an agent that must be told to log in',
    cmd: "the agent's command, split into words as a shell does, e.g. npx -y @agentclientprotocol/claude-agent-acp; required",
  }),
  reportsTools: true,
  keepsSessions: true,
  create(options, context) {
    const settings = readCliSettings(options, KIND, context.log)
    const command = readCommand(options)
    const authMethod = options.get('auth_method', '') || undefined
    return createAcpBackend(
      {
        backend: KIND.backend,
        serves: 'workspace',
        settings,
        model: (turn) => chooseModel(settings.model, turn.model, 'kept'),
        command: () => command,
        authMethod,
        takesAuthMethod: true,
        environment: async (): Promise<Readonly<Record<string, string>>> =>
          context.environment[CLAUDE_RETRIES] ? {} : { [CLAUDE_RETRIES]: '1' },
        validate: (signal) => validateByGreeting({ command, authMethod }, context, signal),
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

/** Not every program has `--version`, but every ACP agent must answer `initialize`, and it calls no model for that. */
async function validateByGreeting(
  {
    command,
    authMethod,
  }: { readonly command: readonly [string, ...string[]]; readonly authMethod: string | undefined },
  { processes, environment, log, clock }: BackendContext,
  signal: AbortSignal,
): Promise<Validation> {
  probes += 1
  const facts = () => ({
    command: command.join(' '),
    timeout: '60s',
    outputBytesMax: OUTPUT_BYTES_MAX,
    nowMs: clock.nowMs(),
  })
  const env = childEnvironment(environment, {})
  const spawning = { command, cwd: '/', env, mark: `acp-probe-${process.pid}-${probes}` }
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(GREETING_MS_MAX)])
    // Without the login, which may open a browser.
    const { version, canLoad, canResume, authMethods } = await greetOnce({ processes, spawning, log, facts }, limit)
    if (authMethod !== undefined && !authMethods.some(({ id }) => id === authMethod)) {
      const problem = `backend "acp": the agent has no login method ${JSON.stringify(authMethod)}`
      return { ok: false, problem, remedy: authAdvice(authMethods) }
    }
    const notes = [
      ...(canLoad || canResume ? [] : ['it cannot load sessions: a conversation ends with its process']),
      ...(authMethod === undefined && authMethods.length > 0
        ? [`if it is not logged in: ${authAdvice(authMethods)}`]
        : []),
    ]
    return { ok: true, version, ...(notes.length > 0 && { note: notes.join('; ') }) }
  } catch (thrown) {
    return {
      ok: false,
      problem: `backend "acp": the agent does not answer initialize: ${agentError(thrown, 0).message}`,
      remedy: 'run the command by hand: the program must exist and speak the Agent Client Protocol on stdin and stdout',
    }
  }
}
