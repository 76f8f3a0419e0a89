/**
 * The `openclaw` backend: a process a message with `openclaw agent --local`, in a session of openclaw's own for each
 * conversation. Slow by nature: a run takes about twenty seconds and a gigabyte.
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
  quiet: { stateIn: ['OPENCLAW_STATE_DIR'] },
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
  summary: 'OpenClaw, one process a message, with its own sessions',
  options: cliOptions(KIND, { agent: `which of its agents (${DEFAULT_AGENT})` }),
  // It names them only when all is over.
  runsCommands: true,
  reportsTools: false,
  tested: '2026.9.6',
  create: (options, context) =>
    createOneShotBackend(
      describeAgent(options.get('agent', DEFAULT_AGENT)),
      readCliSettings(options, KIND, context.log),
      context,
    ),
}
