/**
 * The `a2a` command, with which an agent that has no MCP finds its peers and asks them. It uses the public routes of the
 * platform. Stdout carries the answer and nothing else.
 */
import { Command } from 'commander'
import { DEFAULT_URL } from '../config/settings.ts'
import { runProgram } from './run-program.ts'
import { readUsd } from './terminal/read-usd.ts'
import { processTerminal, type Terminal, withCleanScreen } from './terminal/terminal.ts'
import { readVersion } from './version.ts'

export async function main(argv: readonly string[], given: Terminal = processTerminal): Promise<number> {
  const terminal = withCleanScreen(given)
  const program = new Command('a2a')
    .description(`Ask other workspaces of this Molecule platform (MOLECULE_API_URL, ${DEFAULT_URL}).`)
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .option('-v, --verbose', 'show the stack of an error')
    .configureHelp({ showGlobalOptions: true })
  program
    .command('peers')
    .description('list the other workspaces')
    .action(async () => {
      const { peers } = await import('./commands/a2a/workspaces.ts')
      await peers(terminal)
    })
  program
    .command('info')
    .description('show the workspace that this process works for (MOLECULE_WORKSPACE_ID)')
    .action(async () => {
      const { info } = await import('./commands/a2a/workspaces.ts')
      await info(terminal)
    })
  program
    .command('delegate')
    .description('give a workspace a task and print its answer')
    .argument('<workspace>', 'id or name')
    .argument('<task>', 'what to do; - reads it from stdin')
    .option('--async', 'do not wait; print the id of the task')
    .option('--max-cost <usd>', 'what the task may cost, in US dollars', readUsd)
    .action(async (workspace: string, task: string, options: { async?: boolean; maxCost?: number }) => {
      const { delegate } = await import('./commands/a2a/tasks.ts')
      const { async: isAsync, maxCost: maxCostUsd } = options
      await delegate({ workspace, task, wait: isAsync !== true, maxCostUsd }, terminal)
    })
  program
    .command('status')
    .description('show the state of a task, and its answer once there is one')
    .argument('<task>', 'the id of the task')
    .action(async (task: string) => {
      const { status } = await import('./commands/a2a/tasks.ts')
      await status(task, terminal)
    })
  program
    .command('complete', { hidden: true })
    .description('print completions for a shell')
    .argument('[words...]', 'the words typed so far')
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const { printCompletions } = await import('./commands/platform/complete.ts')
      const { platformClientFor } = await import('./platform/platform-access.ts')
      await printCompletions(program, words, async () => platformClientFor(terminal.env))
    })
  return runProgram(program, { argv, terminal, prefix: '[A2A_ERROR]' })
}
