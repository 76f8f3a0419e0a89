/**
 * The `molecule` command: the tree of commands and nothing else. Each command's code is imported when it runs, so that
 * `--help` loads no more than this file.
 */
import { Command } from 'commander'
import { processTerminal, runProgram, type Terminal } from './command-line.ts'
import { readVersion } from './version.ts'

export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  const program = new Command('molecule')
    .description(
      'Gives every command-line agent an address: durable workspaces that people, programs and agents talk to.',
    )
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .option('-v, --verbose', 'show where an error came from, and the whole log on stderr')
    .configureHelp({ showGlobalOptions: true })
  program
    .command('up')
    .description('start the platform in this terminal')
    .option('--port <number>', 'port to listen on, 0 for any free one (8080; MOLECULE_PORT)')
    .option('--host <address>', 'address to listen on (127.0.0.1; MOLECULE_HOST)')
    .option('--data-dir <folder>', 'where everything is kept (~/.molecule; MOLECULE_HOME)')
    .option('--database <url>', 'postgres://... instead of the embedded store (DATABASE_URL)')
    .option('--drain <duration>', 'how long running turns may finish at shutdown (10s; MOLECULE_DRAIN)')
    .option('--max-block <duration>', 'how long a blocking call waits for its answer (120s; MOLECULE_MAX_BLOCK)')
    .option(
      '--allow-outbound <list>',
      'private hosts or ranges that webhooks may go to, with commas between (none; MOLECULE_ALLOW_OUTBOUND)',
    )
    .option('--log-level <level>', 'debug, info, warn, error or silent (info; MOLECULE_LOG_LEVEL)')
    .action(async (options: UpOptions) => {
      const { up } = await import('./commands/up.ts')
      const verbose = program.opts()['verbose'] === true
      await up({ flags: toFlags(options), verbose, terminal })
    })
  return runProgram(program, { argv, terminal, prefix: 'error:' })
}

type UpOptions = Readonly<Record<string, string | undefined>>

/** Back to the names they were typed by: `dataDir` is `data-dir` again. */
function toFlags(options: UpOptions): Record<string, string | undefined> {
  const entries = Object.entries(options)
  return Object.fromEntries(
    entries.map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  )
}
