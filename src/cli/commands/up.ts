/** What `molecule up` takes; what it does is in `up/up.ts`. */
import type { DefineCommand } from '../command-context.ts'

export const define: DefineCommand = (command, _openContext, terminal) => {
  command
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
    .action(async (options: UpFlags) => {
      const { up } = await import('../up/up.ts')
      const verbose = command.optsWithGlobals()['verbose'] === true
      await up({ flags: toFlags(options), verbose, terminal })
    })
}

type UpFlags = Readonly<Record<string, string | undefined>>

/** Back to the names they were typed by: `dataDir` is `data-dir` again. */
function toFlags(options: UpFlags): Record<string, string | undefined> {
  const entries = Object.entries(options)
  return Object.fromEntries(
    entries.map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]),
  )
}
