/**
 * What every command but `up` finds when it runs: the terminal with the global options laid over its environment, the
 * format of its output, the platform. Options go before the environment, the environment before `config set`, that
 * before what is found.
 */
import type { Command } from 'commander'
import type { PlatformClient } from '../client/platform-client.ts'
import { loadDataDir } from '../config/config.ts'
import { MoleculeError } from '../errors.ts'
import type { Terminal } from './command-line.ts'
import { readCliConfig } from './data-folder/cli-config.ts'
import { readRunningPlatform } from './data-folder/data-folder.ts'
import { platformClientFor } from './platform/platform-access.ts'
import { OUTPUT_FORMATS, type OutputFormat, render } from './terminal/output.ts'

/** Gives a command its arguments, options, commands below it and what it does. */
export type DefineCommand = (command: Command, openContext: () => Promise<CommandContext>, terminal: Terminal) => void

export interface CommandContext {
  readonly terminal: Terminal
  readonly dataDir: string
  readonly output: OutputFormat
  /** Where the platform is looked for. */
  readonly apiUrl: string
  platform(): PlatformClient
  /** Prints the value as it was asked for; a table is made only where one is wanted. */
  show(value: unknown, table: () => string): Promise<void>
}

export interface GlobalOptions {
  readonly output?: string
  readonly apiUrl?: string
}

const DEFAULT_URL = 'http://localhost:8080'

export function openCommandContext(options: GlobalOptions, given: Terminal): CommandContext {
  const dataDir = loadDataDir({ flags: {}, env: given.env })
  const config = readCliConfig(dataDir)
  const output = toOutputFormat(options.output ?? (given.env['MOLECULE_OUTPUT'] || config.output || 'table'))
  const asked = options.apiUrl || given.env['MOLECULE_API_URL'] || config.api_url
  const apiUrl = asked || readRunningPlatform(dataDir)?.url || DEFAULT_URL
  const terminal: Terminal = { ...given, env: { ...given.env, MOLECULE_API_URL: apiUrl } }
  exitOnClosedPipe()
  return {
    ...{ terminal, dataDir, output, apiUrl },
    platform: () => platformClientFor(terminal.env),
    async show(value, table) {
      terminal.out(output === 'table' ? table() : await render(value, output))
    },
  }
}

function toOutputFormat(word: string): OutputFormat {
  const format = OUTPUT_FORMATS.find((known) => known === word)
  if (format !== undefined) return format
  throw new MoleculeError('invalid_request', `there is no output "${word}"; use ${OUTPUT_FORMATS.join(', ')}`)
}

let watchesOutput = false

/** `molecule logs | head` closes the pipe after a few lines: that is an end, not a failure. */
function exitOnClosedPipe(): void {
  if (watchesOutput) return
  watchesOutput = true
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}
