/**
 * The context of every command but `up` and `connect`: terminal, data folder, output format, client of the platform.
 * A global option wins over the environment, the environment over `config set`, and that over the default.
 */
import type { Command } from 'commander'
import type { PlatformClient } from '../client/platform-client.ts'
import { loadDataDir } from '../config/config.ts'
import { DEFAULT_URL } from '../config/settings.ts'
import { MoleculeError } from '../errors.ts'
import { readCliConfig } from './data-folder/cli-config.ts'
import { readRunningPlatform } from './data-folder/data-folder.ts'
import { platformClientFor } from './platform/platform-access.ts'
import { OUTPUT_FORMATS, type OutputFormat, render } from './terminal/output.ts'
import type { Terminal } from './terminal/terminal.ts'

/** Gives a command its arguments, options, subcommands and action. */
export type DefineCommand = (command: Command, openContext: () => Promise<CommandContext>, terminal: Terminal) => void

export interface CommandContext {
  readonly terminal: Terminal
  readonly dataDir: string
  readonly output: OutputFormat
  /** URL of the platform. */
  readonly apiUrl: string
  platform(): PlatformClient
  /** Prints the value in the output format; `table` is called only for the format `table`. */
  show(value: unknown, table: () => string): Promise<void>
}

export interface GlobalOptions {
  readonly output?: string
  readonly apiUrl?: string
}

export function openCommandContext(options: GlobalOptions, given: Terminal): CommandContext {
  const dataDir = loadDataDir({ flags: {}, env: given.env })
  const config = readCliConfig(dataDir)
  const output = toOutputFormat(options.output ?? (given.env['MOLECULE_OUTPUT'] || config.output || 'table'))
  const configured = options.apiUrl || given.env['MOLECULE_API_URL'] || config.api_url
  const apiUrl = configured || readRunningPlatform(dataDir)?.url || DEFAULT_URL
  const terminal: Terminal = { ...given, env: { ...given.env, MOLECULE_API_URL: apiUrl } }
  exitOnClosedPipe()
  return {
    ...{ terminal, dataDir, output, apiUrl },
    platform: () => platformClientFor(given.env, configured || ''),
    async show(value, table) {
      terminal.out(output === 'table' ? table() : await render(value, output))
    },
  }
}

function toOutputFormat(name: string): OutputFormat {
  const format = OUTPUT_FORMATS.find((known) => known === name)
  if (format !== undefined) return format
  throw new MoleculeError('invalid_request', `there is no output "${name}"; use ${OUTPUT_FORMATS.join(', ')}`)
}

let watchesOutput = false

/** Prevents a stack trace when a reader closes the pipe early, as in `molecule logs | head`: the command exits with 0. */
function exitOnClosedPipe(): void {
  if (watchesOutput) return
  watchesOutput = true
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}
