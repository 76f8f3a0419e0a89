/**
 * The `gemini` backend: Google's Gemini CLI, kept warm in its ACP mode (the default; answers about 150 times sooner than
 * a new process) or started once per message. gemini can replace its system prompt but not append to it, so the
 * instructions stand before the first prompt of a session.
 */
import { MINUTE_MS } from '../../duration.ts'
import type { Backend, BackendContext, BackendDefinition } from '../backend.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import {
  type CliKind,
  type CliSettings,
  cliOptions,
  readCliSettings,
  warnUnsupportedOption,
} from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent, validateCliOptionsOf } from '../engine/cli/one-shot-agent.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { readTokenVariables } from '../engine/environment/agent-token.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import { acpArgs, oneShotArgs } from './args.ts'
import { failedCallIn, SENTENCES } from './outcome.ts'
import { createGeminiParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'gemini',
  bin: 'gemini',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  cannot: ['max_turns'],
  isolation: {
    stateIn: ['GEMINI_CLI_HOME'],
    files: {
      '.gemini/settings.json': JSON.stringify({
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    },
  },
}

/** Without this variable gemini runs behind a launcher that ignores signals and costs a second. */
const OWN_ENVIRONMENT = { GEMINI_CLI_NO_RELAUNCH: 'true' }

/**
 * The earliest time to load a session. gemini names the file of a session after the minute in which it began, and loads
 * it by first opening a new file, named after the present minute. In the same minute both are the same file, so the
 * session is deleted and then not found (seen with 0.61).
 */
export const nextMinuteMs = (begunMs: number): number => (Math.floor(begunMs / MINUTE_MS) + 1) * MINUTE_MS

const AGENT: OneShotAgent = {
  kind: KIND,
  install: 'install it with `npm install -g @google/gemini-cli`',
  auth: {
    variable: 'GEMINI_API_KEY',
    from: ['GEMINI_API_KEY'],
    instead: ['GOOGLE_API_KEY', 'GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_GENAI_USE_VERTEXAI'],
  },
  modelPrefix: 'dropped',
  args: oneShotArgs,
  environment: () => OWN_ENVIRONMENT,
  createParser: createGeminiParser,
  help: [['--help']],
}

export const gemini: BackendDefinition = {
  name: 'gemini',
  summary: "Google's Gemini CLI, kept warm over ACP or started once per message",
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  tested: '0.61.0',
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createGemini(settings, context),
    ),
}

function createGemini(settings: CliSettings, context: BackendContext): Backend {
  if (settings.mode === 'oneshot') {
    if (settings.mcpServers.length > 0) {
      const why = 'gemini reads MCP servers only from its settings files; mode session passes them over ACP'
      warnUnsupportedOption(context.log, KIND.backend, { option: 'mcp_servers', why })
    }
    return createOneShotBackend(AGENT, settings, context)
  }
  const { environment } = context
  return createAcpBackend(
    {
      backend: KIND.backend,
      serves: 'conversation',
      settings,
      model: (turn) => chooseModel(settings.model, turn.model, AGENT.modelPrefix),
      command: (model) => [settings.bin, ...acpArgs({ settings, model })],
      modelByCommand: true,
      mcpToolName: (server, tool) => `mcp_${server}_${tool}`,
      loadableFromMs: nextMinuteMs,
      // Seen with 0.61: its cleanup of old sessions deletes every file without a message, and all others of that id.
      sweepsAtStart: true,
      errorMeanings: { sentences: SENTENCES },
      failedCallIn,
      logVariable: 'GEMINI_DEBUG_LOG_FILE',
      environment: async () => ({
        ...(await readTokenVariables(AGENT.auth, environment, settings.authTokenFile)),
        ...OWN_ENVIRONMENT,
      }),
      isolation: KIND.isolation,
      validate: (signal) => validateCli(validateCliOptionsOf(AGENT, settings, context), signal),
    },
    context,
  )
}
