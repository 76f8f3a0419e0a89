/**
 * The `hermes` backend: Nous Research's Hermes Agent, started once per message, with its own sessions. Built from its
 * reference and its source, because it cannot be installed from npm. The `acp` backend with `cmd: hermes acp` keeps it
 * warm.
 */
import type { BackendDefinition } from '../backend.ts'
import { type CliKind, cliOptions, readCliSettings, warnUnsupportedOption } from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent } from '../engine/cli/one-shot-agent.ts'
import { hermesArgs } from './args.ts'
import { createHermesParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'hermes',
  bin: 'hermes',
  modes: ['oneshot'],
  asksIn: [],
  cannot: ['mode', 'allowed_tools', 'mcp_servers', 'auth_token_file', 'warm_max', 'warm_idle'],
  isolation: { stateIn: ['HERMES_HOME'] },
}

const AGENT: OneShotAgent = {
  kind: KIND,
  install: 'install it as described at https://hermes-agent.nousresearch.com',
  // hermes has many providers and keeps their keys itself (`hermes auth`), or finds them in the environment.
  auth: { variable: '', from: [], instead: [] },
  modelPrefix: 'kept',
  args: hermesArgs,
  environment: () => ({ PYTHONUTF8: '1', PYTHONUNBUFFERED: '1' }),
  createParser: createHermesParser,
  help: [['--help'], ['chat', '--help']],
}

export const hermes: BackendDefinition = {
  name: 'hermes',
  summary: 'Hermes Agent of Nous Research, started once per message',
  options: cliOptions(KIND),
  runsCommands: true,
  reportsTools: true,
  create(options, context) {
    const settings = readCliSettings(options, KIND, context.log)
    if (settings.permission === 'allowed_tools' && options.get('permission', '') !== '') {
      const why = 'hermes has no list of tools; its own settings (approvals) decide which tools need permission'
      warnUnsupportedOption(context.log, KIND.backend, { option: 'permission', why })
    }
    return createOneShotBackend(AGENT, settings, context)
  },
}
