/** What `molecule connect` takes; what it does is in `bridge/connect.ts`. */
import { InvalidArgumentError } from 'commander'
import { builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import type { ConnectFlags } from '../bridge/connect.ts'
import type { DefineCommand } from '../command-context.ts'

export const define: DefineCommand = (command, _openContext, terminal) => {
  const names = createBackendRegistry(builtinBackends).names()
  command
    .argument('<workspace-id>', 'a workspace made with the runtime external')
    .option('--backend <name>', `the agent: ${names.join(', ')} (claude-code)`)
    .option('--backend-opt <key=value>', 'an option of the backend; may be given several times', collectPairs)
    .option('--token <token>', 'the token of the workspace (MOLECULE_WORKSPACE_TOKEN)')
    .option('--token-file <file>', 'a file with the token, read again when it changes (MOLECULE_WORKSPACE_TOKEN_FILE)')
    .option('--dir <folder>', 'the folder that the agent works in (here)')
    .option('--dry-run', 'look at everything and take no message')
    .option('--concurrency <number>', 'how many messages at a time (1)')
    .option('--drain <duration>', 'how long running turns may finish when stopped (10s)')
    .action(async (workspaceId: string) => {
      const { connect } = await import('../bridge/connect.ts')
      const flags = command.optsWithGlobals<ConnectFlags & { readonly verbose?: boolean }>()
      const usage = (problem: string) => command.error(`error: ${problem}`)
      await connect({ workspaceId, flags, verbose: flags.verbose === true, terminal, usage })
    })
}

function collectPairs(pair: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = pair.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must be KEY=VALUE, as in cmd="cat".')
  return { ...before, [pair.slice(0, at)]: pair.slice(at + 1) }
}
