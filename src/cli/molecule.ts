/** The `molecule` command: `tree.ts` lists its commands, `program.ts` parses and runs them. */
import { rootHelp } from './help.ts'
import { ownProgram } from './terminal/own-command.ts'
import { hideDatabasePassword } from './terminal/process-title.ts'
import { processTerminal, type Terminal } from './terminal/terminal.ts'

export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  // The first thing a new user types is answered without loading the parser.
  if (argv.length === 1 && (argv[0] === '--help' || argv[0] === '-h')) {
    terminal.out(rootHelp(ownProgram(terminal.env), terminal.screen?.columns))
    return 0
  }
  hideDatabasePassword(argv)
  const { runMolecule } = await import('./program.ts')
  return await runMolecule(argv, terminal)
}
