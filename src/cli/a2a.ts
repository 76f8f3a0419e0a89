/**
 * The `a2a` command: how an agent that speaks no MCP finds and asks its peers. It talks to the platform by the routes
 * that everybody has. What a command prints on stdout is the answer and nothing else.
 */
import { Command } from 'commander'
import { processTerminal, runProgram, type Terminal } from './command-line.ts'
import { readVersion } from './version.ts'

export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  const program = new Command('a2a')
    .description('Ask other workspaces of this Molecule platform (MOLECULE_API_URL, http://localhost:8080).')
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .option('-v, --verbose', 'show where an error came from')
    .configureHelp({ showGlobalOptions: true })
  program
    .command('peers')
    .description('list the workspaces that can be asked')
    .action(async () => {
      const { peers } = await import('./commands/a2a/peers.ts')
      await peers(terminal)
    })
  program
    .command('info')
    .description('tell about the workspace this runs in (MOLECULE_WORKSPACE_ID)')
    .action(async () => {
      const { info } = await import('./commands/a2a/info.ts')
      await info(terminal)
    })
  program
    .command('delegate')
    .description('give a workspace a task and print its answer')
    .argument('<workspace>', 'id or name')
    .argument('<task>', 'what to do, in words; - reads it from stdin')
    .option('--async', 'do not wait: print the id of the task')
    .action(async (workspace: string, task: string, options: { async?: boolean }) => {
      const { delegate } = await import('./commands/a2a/delegate.ts')
      await delegate({ workspace, task, wait: options.async !== true }, terminal)
    })
  program
    .command('status')
    .description('tell how a task stands, and its answer once there is one')
    .argument('<task>', 'the id of the task')
    .action(async (task: string) => {
      const { status } = await import('./commands/a2a/status.ts')
      await status(task, terminal)
    })
  return runProgram(program, { argv, terminal, prefix: '[A2A_ERROR]' })
}
