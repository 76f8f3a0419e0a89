/**
 * The `openclaw` backend: `openclaw agent --local` once per message, with one of openclaw's own sessions per
 * conversation. It is slow: a run takes about 20 seconds and 1 GB of memory.
 */
import type { BackendDefinition } from '../backend.ts'
import { type CliKind, cliOptions, readCliSettings } from '../engine/cli/cli-options.ts'
import { createOneShotBackend, type OneShotAgent } from '../engine/cli/one-shot-agent.ts'
import { openclawArgs } from './args.ts'
import { createOpenclawParser } from './parse.ts'

const KIND: CliKind = {
  backend: 'openclaw',
  bin: 'openclaw',
  modes: ['oneshot'],
  asksIn: [],
  cannot: [
    ...(['mode', 'permission', 'allowed_tools', 'max_turns'] as const),
    ...(['mcp_servers', 'auth_token_file', 'warm_max', 'warm_idle'] as const),
  ],
  isolation: { stateIn: ['OPENCLAW_STATE_DIR'] },
}

const DEFAULT_AGENT = 'main'

function describeAgent(agent: string): OneShotAgent {
  return {
    kind: KIND,
    install: 'install it with `npm install -g openclaw` and set it up with `openclaw setup`',
    auth: { variable: '', from: [], instead: [] },
    modelPrefix: 'kept',
    args: (call) => openclawArgs({ ...call, agent }),
    environment: () => ({}),
    createParser: createOpenclawParser,
    help: [['agent', '--help']],
    promptFile: 'message.md',
  }
}

export const openclaw: BackendDefinition = {
  name: 'openclaw',
  summary: 'OpenClaw, started once per message, with its own sessions',
  options: cliOptions(KIND, { agent: `the openclaw agent to run (${DEFAULT_AGENT})` }),
  runsCommands: true,
  // It names its tools only at the end.
  reportsTools: false,
  tested: '2026.9.6',
  create: (options, context) =>
    createOneShotBackend(
      describeAgent(options.get('agent', DEFAULT_AGENT)),
      readCliSettings(options, KIND, context.log),
      context,
    ),
}
