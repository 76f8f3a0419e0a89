/** Turns the tree of commands into a parser and runs it. A command that the arguments do not name is not loaded. */
import { Command } from 'commander'
import type { CommandContext } from './command-context.ts'
import { rootHelp } from './help.ts'
import { runProgram } from './run-program.ts'
import { ownProgram } from './terminal/own-command.ts'
import type { Terminal } from './terminal/terminal.ts'
import { COMMANDS, DESCRIPTION, GLOBAL_OPTIONS, HELP_OPTION, VERSION_OPTION } from './tree.ts'
import { readVersion } from './version.ts'

export async function runMolecule(argv: readonly string[], terminal: Terminal): Promise<number> {
  const program = await buildProgram(terminal, (name) => argv.includes(name))
  const suggest = async (unknown: string) => {
    const { suggestCommands } = await import('./unknown-command.ts')
    return suggestCommands(await buildProgram(terminal, () => true), argv, unknown)
  }
  return await runProgram(program, { argv, terminal, prefix: 'error:', suggest })
}

/** Loads the commands that are `wanted`; the others get a name and a summary only. */
export async function buildProgram(terminal: Terminal, wanted: (name: string) => boolean): Promise<Command> {
  const program = new Command('molecule')
    .description(DESCRIPTION)
    .version(readVersion(), ...VERSION_OPTION)
    .helpOption(...HELP_OPTION)
    .configureHelp({ showGlobalOptions: true })
  for (const [flags, text] of GLOBAL_OPTIONS) program.option(flags, text)
  const openContext = async (): Promise<CommandContext> => {
    const { openCommandContext } = await import('./command-context.ts')
    return openCommandContext(program.opts(), terminal)
  }
  for (const { name, summary, load, hidden = false } of COMMANDS) {
    const command = program.command(name, { hidden }).description(summary)
    if (wanted(name)) (await load()).define(command, openContext, terminal)
  }
  program.helpInformation = () => rootHelp(ownProgram(terminal.env), terminal.screen?.columns)
  return program
}
