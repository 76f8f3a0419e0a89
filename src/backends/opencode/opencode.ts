/**
 * The `opencode` backend: kept warm by `opencode acp` (the default) or `opencode run` for each message. Its HTTP
 * server answers a little sooner than ACP (about 0.2 s against 0.35 s, and 6 s for a run), but has a protocol of its
 * own for prompts, events and permissions; ACP is the engine that two other backends use.
 */
import { randomBytes } from 'node:crypto'
import type { Backend, BackendContext, BackendDefinition, McpServer } from '../backend.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliKind, type CliSettings, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent, validateCliOptionsOf } from '../engine/cli/one-shot-agent.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { type AgentTokenSource, readTokenVariables } from '../engine/environment/agent-token.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import { acpArgs, configContent, oneShotArgs } from './args.ts'
import { createOpencodeParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'opencode',
  bin: 'opencode',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  cannot: ['max_turns'],
  quiet: { stateIn: ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'], isShared: true },
}

const INSTALL = 'install it with `npm install -g opencode-ai`'
const AUTH: AgentTokenSource = { variable: 'OPENCODE_API_KEY', from: ['OPENCODE_API_KEY'], instead: [] }
const MODEL_PREFIX = 'kept'

/**
 * The settings of its process; `OPENCODE_CONFIG_CONTENT` of the user's own would be lost: files are the place for it.
 * In either mode it also opens an HTTP server on loopback, by which anybody on the machine could have it do anything:
 * so that has a password that nobody knows.
 */
function createEnvironment(settings: CliSettings): (mcpServers: readonly McpServer[]) => Record<string, string> {
  const password = randomBytes(32).toString('hex')
  return (mcpServers) => ({
    OPENCODE_CONFIG_CONTENT: configContent({ settings, mcpServers }),
    OPENCODE_DISABLE_AUTOUPDATE: 'true',
    OPENCODE_SERVER_PASSWORD: password,
  })
}

function describeAgent(ownEnvironment: ReturnType<typeof createEnvironment>): OneShotAgent {
  return {
    kind: KIND,
    install: INSTALL,
    auth: AUTH,
    modelPrefix: MODEL_PREFIX,
    args: oneShotArgs,
    environment: ({ mcpServers }) => ownEnvironment(mcpServers),
    createParser: createOpencodeParser,
    help: [['run', '--help']],
  }
}

export const opencode: BackendDefinition = {
  name: 'opencode',
  summary: 'opencode, warm by ACP or one process a message',
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  tested: '1.18.33',
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createOpencode(settings, context),
    ),
}

/** Without the command it takes the word for a folder. */
const MISUNDERSTANDING = { says: /failed to change directory to \S*acp/i, missing: 'command acp missing' }

function createOpencode(settings: CliSettings, context: BackendContext): Backend {
  const ownEnvironment = createEnvironment(settings)
  if (settings.mode === 'oneshot') return createOneShotBackend(describeAgent(ownEnvironment), settings, context)
  const { environment } = context
  return createAcpBackend(
    {
      backend: KIND.backend,
      serves: 'conversation',
      settings,
      model: (turn) => chooseModel(settings.model, turn.model, MODEL_PREFIX),
      command: () => [settings.bin, ...acpArgs(settings)],
      environment: async () => ({
        ...(await readTokenVariables(AUTH, environment, settings.authTokenFile)),
        ...ownEnvironment([]),
      }),
      quiet: KIND.quiet,
      misunderstanding: MISUNDERSTANDING,
      validate: (signal) =>
        validateCli(validateCliOptionsOf({ kind: KIND, install: INSTALL }, settings, context), signal),
    },
    context,
  )
}
