/**
 * The `gemini` backend: Google's Gemini CLI, kept warm by its own ACP mode (the default; about 150 times sooner than
 * a process a message) or started for each message. It has no flag that appends to its system prompt, and the
 * variable for it replaces all of it, so the instructions stand before the first prompt of a session.
 */
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
import { createGeminiParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'gemini',
  bin: 'gemini',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  cannot: ['max_turns'],
  quiet: {
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

/** Without it a launcher stands before the program, ignores signals and costs a second. */
const OWN_ENVIRONMENT = { GEMINI_CLI_NO_RELAUNCH: 'true' }

const MINUTE_MS = 60_000

/**
 * Gemini keeps a session in a file that is named by the minute in which it began, and begins to load it by opening a
 * new one, named by the minute of now. In the same minute that is the same file: the session is wiped and then not
 * found (seen with 0.61).
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
  summary: "Google's Gemini CLI, warm by ACP or one process a message",
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  tested: '0.61.0',
  create: (options, context) =>
    withOneShotFallback(readCliSettings(options, KIND, context.log), context.log, (settings) =>
      createGemini(settings, context),
    ),
}

function createGemini(settings: CliSettings, context: BackendContext): Backend {
  if (settings.mode === 'oneshot') {
    if (settings.mcpServers.length > 0) {
      const why = 'gemini takes MCP servers from its settings files alone; mode session gives them by ACP'
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
      loadableFromMs: nextMinuteMs,
      // Seen with 0.61: its cleaning of old sessions takes every file without a message, and all others of that id.
      sweepsAtStart: true,
      environment: async () => ({
        ...(await readTokenVariables(AGENT.auth, environment, settings.authTokenFile)),
        ...OWN_ENVIRONMENT,
      }),
      quiet: KIND.quiet,
      validate: (signal) => validateCli(validateCliOptionsOf(AGENT, settings, context), signal),
    },
    context,
  )
}
