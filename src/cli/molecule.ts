/** The `molecule` command. Its tree is `tree.ts`, what is done with it `program.ts`. */
import { processTerminal, type Terminal } from './command-line.ts'
import { rootHelp } from './help.ts'

export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  // The one question that everybody asks first is answered without loading a parser.
  if (argv.length === 1 && (argv[0] === '--help' || argv[0] === '-h')) {
    terminal.out(rootHelp(terminal.screen?.columns))
    return 0
  }
  const { runMolecule } = await import('./program.ts')
  return await runMolecule(argv, terminal)
}
