/**
 * The `opencode` backend: kept warm by `opencode acp` (the default), or `opencode run` once per message. Measured: 0.35 s
 * over ACP, 6 s for a run. Its HTTP server takes 0.2 s but has its own protocol for prompts, events and permissions; two
 * other backends use ACP too.
 */
import { randomBytes } from 'node:crypto'
import { isJsonObject, stringOf } from '../../protocol/json.ts'
import type { Backend, BackendContext, BackendDefinition, McpServer } from '../backend.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import type { AcpErrorMeanings } from '../engine/acp/acp-errors.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import { type CliKind, type CliSettings, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent, validateCliOptionsOf } from '../engine/cli/one-shot-agent.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { type AgentTokenSource, readTokenVariables } from '../engine/environment/agent-token.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import { acpArgs, configContent, oneShotArgs } from './args.ts'
import { CODE_OF_NAME, createOpencodeParser, failedCallIn, LOG_ENVIRONMENT, SENTENCES } from './parse.ts'

const KIND: CliKind = {
  backend: 'opencode',
  bin: 'opencode',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  cannot: ['max_turns'],
  isolation: { stateIn: ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'], isShared: true },
}

const INSTALL = 'install it with `npm install -g opencode-ai`'
const AUTH: AgentTokenSource = { variable: 'OPENCODE_API_KEY', from: ['OPENCODE_API_KEY'], instead: [] }
const MODEL_PREFIX = 'kept'

/**
 * The environment of the process. It replaces an `OPENCODE_CONFIG_CONTENT` of the user; config files still count. In both
 * modes opencode opens an HTTP server on loopback through which every user of the machine could give it commands, so the
 * server gets a random password.
 */
function createEnvironment(settings: CliSettings): (mcpServers: readonly McpServer[]) => Record<string, string> {
  const password = randomBytes(32).toString('hex')
  return (mcpServers) => ({
    OPENCODE_CONFIG_CONTENT: configContent({ settings, mcpServers }),
    OPENCODE_DISABLE_AUTOUPDATE: 'true',
    ...LOG_ENVIRONMENT,
    OPENCODE_SERVER_PASSWORD: password,
  })
}

const toolName = (server: string, tool: string): string => `${server}_${tool}`

function describeAgent(ownEnvironment: ReturnType<typeof createEnvironment>): OneShotAgent {
  return {
    kind: KIND,
    install: INSTALL,
    auth: AUTH,
    modelPrefix: MODEL_PREFIX,
    args: oneShotArgs,
    environment: ({ mcpServers }) => ownEnvironment(mcpServers),
    createParser: createOpencodeParser,
    mcpToolName: toolName,
    help: [['run', '--help']],
  }
}

export const opencode: BackendDefinition = {
  name: 'opencode',
  summary: 'opencode, kept warm over ACP or started once per message',
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  tested: '1.18.33',
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createOpencode(settings, context),
    ),
}

/** An opencode without the command takes `acp` for a folder. */
const MISUNDERSTANDING = { says: /failed to change directory to \S*acp/i, missing: 'command acp missing' }

export const OPENCODE_ERRORS: AcpErrorMeanings = {
  sentences: SENTENCES,
  codeOf: (data) => CODE_OF_NAME[isJsonObject(data) ? stringOf(data['errorName']) : ''],
}

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
      titlesAreNames: true,
      mcpToolName: toolName,
      environment: async () => ({
        ...(await readTokenVariables(AUTH, environment, settings.authTokenFile)),
        ...ownEnvironment([]),
      }),
      isolation: KIND.isolation,
      misunderstanding: MISUNDERSTANDING,
      errorMeanings: OPENCODE_ERRORS,
      failedCallIn,
      validate: (signal) =>
        validateCli(validateCliOptionsOf({ kind: KIND, install: INSTALL }, settings, context), signal),
    },
    context,
  )
}
