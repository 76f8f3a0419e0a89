/**
 * The context of every command but `up` and `connect`: terminal, data folder, output format, client of the platform.
 * A global option wins over the environment, the environment over `config set`, and that over the default.
 */
import type { Command } from 'commander'
import { createPlatformClient, type PlatformClient } from '../client/platform-client.ts'
import { loadDataDir } from '../config/config.ts'
import { DEFAULT_URL } from '../config/settings.ts'
import { MoleculeError } from '../errors.ts'
import { CLI_CONFIG_FILE, readCliConfig } from './data-folder/cli-config.ts'
import { readRunningPlatform } from './data-folder/data-folder.ts'
import { type PlatformAccess, platformAccessFor } from './platform/platform-access.ts'
import { type Column, OUTPUT_FORMATS, type OutputFormat, render, renderTable } from './terminal/output.ts'
import { ownCommand, withOwnCommand } from './terminal/own-command.ts'
import { type Terminal, withCleanScreen } from './terminal/terminal.ts'

/** Gives a command its arguments, options, subcommands and action. */
export type DefineCommand = (command: Command, openContext: () => Promise<CommandContext>, terminal: Terminal) => void

export interface CommandContext {
  readonly terminal: Terminal
  readonly dataDir: string
  readonly output: OutputFormat
  /** URL of the platform. */
  readonly apiUrl: string
  /** Where the two come from: an option, a variable, a file, or `default`. */
  readonly sources: { readonly output: string; readonly apiUrl: string }
  /** How to type `molecule` in this terminal; for every command that is printed. */
  readonly command: string
  /** The sentence with `"molecule ..."` as it is typed in this terminal; for texts of other layers and of the platform. */
  withOwnCommand(sentence: string): string
  platform(): PlatformClient
  /** For a command that calls the platform without the client. */
  access(): PlatformAccess
  /** A table that fits this terminal. */
  table<T>(rows: readonly T[], columns: readonly Column<T>[], none: string): string
  /** Prints the value in the output format; `table` is called only for `table`, and may have `"molecule ..."`. */
  show(value: unknown, table: () => string): Promise<void>
}

export interface GlobalOptions {
  readonly output?: string
  readonly apiUrl?: string
}

export function openCommandContext(options: GlobalOptions, given: Terminal): CommandContext {
  const dataDir = loadDataDir({ flags: {}, env: given.env })
  const config = readCliConfig(dataDir)
  const format = firstSet([
    [options.output, '--output'],
    [given.env['MOLECULE_OUTPUT'], 'MOLECULE_OUTPUT'],
    [config.output, CLI_CONFIG_FILE],
    ['table', 'default'],
  ])
  const output = toOutputFormat(format.value)
  const chosen: readonly Source[] = [
    [options.apiUrl, '--api-url'],
    [given.env['MOLECULE_API_URL'], 'MOLECULE_API_URL'],
    [config.api_url, CLI_CONFIG_FILE],
  ]
  const configured = chosen.find(([value]) => value)?.[0]
  const running = [readRunningPlatform(dataDir)?.url, 'the running platform'] as const
  const address = firstSet([...chosen, running, [DEFAULT_URL, 'default']])
  const apiUrl = address.value
  const terminal = withCleanScreen({ ...given, env: { ...given.env, MOLECULE_API_URL: apiUrl } })
  const command = ownCommand(given.env, { apiUrl: options.apiUrl })
  const access = () => platformAccessFor(given.env, configured || '', address.source)
  exitOnClosedPipe()
  return {
    terminal,
    dataDir,
    output,
    apiUrl,
    sources: { output: format.source, apiUrl: address.source },
    command,
    withOwnCommand: (sentence) => withOwnCommand(sentence, command),
    platform: () => createPlatformClient(access()),
    table: (rows, columns, none) =>
      // Before the cells are cut: the own command may be longer.
      renderTable(rows, columns.map(withOwnCommands(command)), { none, width: terminal.screen?.columns }),
    access,
    async show(value, table) {
      terminal.out(output === 'table' ? withOwnCommand(table(), command) : await render(value, output))
    },
  }
}

const withOwnCommands =
  (command: string) =>
  <T>(column: Column<T>): Column<T> => ({
    ...column,
    of(row) {
      const value = column.of(row)
      return typeof value === 'string' ? withOwnCommand(value, command) : value
    },
  })

type Source = readonly [value: string | undefined, source: string]

/** The first value that is neither absent nor empty; the last one must be there. */
function firstSet(sources: readonly Source[]): { readonly value: string; readonly source: string } {
  const [value = '', source = ''] = sources.find(([candidate]) => candidate) ?? []
  return { value, source }
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
