/**
 * The `hermes` backend: Nous Research's Hermes Agent, kept warm by `hermes acp` (the default), or `hermes chat` once per
 * message. Measured: 40 ms over ACP, 3 s for a run. It cannot be installed from npm, so its tests use recordings of a
 * real run.
 */
import type { Backend, BackendContext, BackendDefinition } from '../backend.ts'
import { createAcpBackend } from '../engine/acp/acp-backend.ts'
import { chooseModel } from '../engine/cli/choose-model.ts'
import {
  type CliKind,
  type CliSettings,
  cliOptions,
  readCliSettings,
  type UnsupportedOption,
  warnUnsupportedOption,
} from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent, validateCliOptionsOf } from '../engine/cli/one-shot-agent.ts'
import { withOneShotFallback } from '../engine/cli/one-shot-fallback.ts'
import { validateCli } from '../engine/probe/validate-cli.ts'
import type { BackendOptions } from '../options.ts'
import { acpArgs, acpPrompt, oneShotArgs } from './args.ts'
import { createHermesParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'hermes',
  bin: 'hermes',
  modes: ['session', 'oneshot'],
  asksIn: ['session'],
  cannot: ['auth_token_file'],
  isolation: { stateIn: ['HERMES_HOME'] },
}

const OWN_ENVIRONMENT = { PYTHONUTF8: '1', PYTHONUNBUFFERED: '1' }

const AGENT: OneShotAgent = {
  kind: KIND,
  install: 'install it as described at https://hermes-agent.nousresearch.com',
  // hermes has many providers and keeps their keys itself (`hermes auth`), or finds them in the environment.
  auth: { variable: '', from: [], instead: [] },
  modelPrefix: 'kept',
  args: oneShotArgs,
  environment: () => OWN_ENVIRONMENT,
  createParser: createHermesParser,
  help: [['--help'], ['chat', '--help']],
}

/** A hermes that was installed without its ACP extra, or before it had one. */
const MISUNDERSTANDING = {
  says: /ACP dependencies not installed|invalid choice: 'acp'/,
  missing: 'command acp missing',
}

export const hermes: BackendDefinition = {
  name: 'hermes',
  summary: 'Hermes Agent of Nous Research, kept warm over ACP or started once per message',
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  keepsSessions: true,
  create(options, context) {
    const settings = readCliSettings(options, KIND, context.log)
    for (const option of unsupportedIn(settings, options)) warnUnsupportedOption(context.log, KIND.backend, option)
    return withOneShotFallback(settings, context.log, (chosen) => createHermes(chosen, context))
  },
}

/** The options that hermes supports only in its other mode. */
function unsupportedIn({ mode }: CliSettings, options: BackendOptions): readonly UnsupportedOption[] {
  const isSet = (option: string) => options.get(option, '') !== ''
  if (mode === 'session') {
    const why = 'hermes takes it only in mode oneshot; in mode session use its own setting agent.max_turns'
    return isSet('max_turns') ? [{ option: 'max_turns', why }] : []
  }
  const why = 'in mode oneshot hermes takes it only from its own settings (hermes tools, hermes mcp, approvals)'
  const isList = options.get('permission', '') === 'allowed_tools'
  return [
    ...['allowed_tools', 'mcp_servers'].filter(isSet).map((option) => ({ option, why })),
    ...(isList ? [{ option: 'permission', why }] : []),
  ]
}

function createHermes(settings: CliSettings, context: BackendContext): Backend {
  if (settings.mode === 'oneshot') return createOneShotBackend(AGENT, settings, context)
  return createAcpBackend(
    {
      backend: KIND.backend,
      serves: 'conversation',
      settings,
      model: (turn) => chooseModel(settings.model, turn.model, AGENT.modelPrefix),
      command: () => [settings.bin, ...acpArgs(settings)],
      environment: () => Promise.resolve(OWN_ENVIRONMENT),
      isolation: KIND.isolation,
      misunderstanding: MISUNDERSTANDING,
      promptText: acpPrompt,
      validate: (signal) => validateCli(validateCliOptionsOf(AGENT, settings, context), signal),
    },
    context,
  )
}
