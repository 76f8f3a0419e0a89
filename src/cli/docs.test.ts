/**
 * Two pages of docs/ end with a reference that is generated from the code: cli.md from the parser, configuration.md from
 * the tables of settings. These tests compare them; `UPDATE_DOCS=1 npm test -- src/cli/docs.test.ts` writes them.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import type { Command } from 'commander'
import { recordingTerminal } from '../../test/fakes/terminal.ts'
import { builtinBackends, createBackendRegistry, resolveBackendName } from '../backends/backends.ts'
import { FILE_KEYS } from '../config/config.ts'
import {
  CONNECT_SETTINGS,
  defaultOf,
  flagsOf,
  GLOBAL_SETTINGS,
  PLATFORM_SETTINGS,
  type Setting,
  VARIABLES,
} from '../config/settings.ts'
import { CONFIG_KEYS, RUNTIME_CONFIG_KEYS } from '../workspaces/config/config-keys.ts'
import { CLI_KEYS } from './data-folder/cli-config.ts'
import { buildProgram } from './program.ts'

const ROOT = new URL('../../', import.meta.url)
const MARK = 'npm test -- src/cli/docs.test.ts writes it. -->\n'

/** Compares the generated part of a page, or writes it. */
function comparePage(name: string, generated: string): void {
  const url = new URL(`docs/${name}`, ROOT)
  const page = readFileSync(url, 'utf8')
  const end = page.indexOf(MARK) + MARK.length
  const expected = `${page.slice(0, end)}\n${generated}`
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(url, expected)
  else assert.equal(page, expected)
}

test('CL-1 docs/cli.md lists every command with its arguments and options, and no other', async () => {
  comparePage('cli.md', commandReference(await buildProgram(recordingTerminal(), () => true)))
})

test('CL-1 docs/configuration.md lists every flag, variable and file key with its default', () => {
  comparePage('configuration.md', configurationReference())
  const names = createBackendRegistry(builtinBackends).names()
  assert.equal(CONNECT_SETTINGS[0].default, resolveBackendName(undefined, names))
})

test('every variable that a command reads is in the table of settings', () => {
  const sources = globSync('src/{cli,config}/**/*.ts', { cwd: ROOT }).filter((path) => !path.endsWith('.test.ts'))
  const known = new Set([...variables(), ...payerVariables()])
  for (const path of sources) {
    const text = readFileSync(new URL(path, ROOT), 'utf8')
    for (const [, name = ''] of text.matchAll(/env\w*\['([A-Z_]+)'\]/g))
      assert.ok(known.has(name), `${name} in ${path}`)
  }
})

test('every command has a summary, and every option has a description', async () => {
  const program = await buildProgram(recordingTerminal(), () => true)
  for (const command of leafCommands(program)) {
    assert.notEqual(command.description(), '', pathOf(command))
    for (const option of command.options) assert.notEqual(option.description, '', `${pathOf(command)} ${option.flags}`)
  }
})

function commandReference(program: Command): string {
  return leafCommands(program)
    .map((command) => {
      const options = command.options.map(({ flags, description }) => `- \`${flags}\`: ${description}`)
      const usage =
        `### ${pathOf(command)} ${command.usage().replace('[options] ', '').replace('[options]', '')}`.trimEnd()
      const lines = [usage, '', sentence(command.description()), ...(options.length > 0 ? ['', ...options] : [])]
      return `${lines.join('\n')}\n`
    })
    .join('\n')
}

/** Commands that have an action, without those that shells call. */
function leafCommands(command: Command): Command[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
  return below.length === 0 ? [command] : below.flatMap(leafCommands)
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

function configurationReference(): string {
  const backends = createBackendRegistry(builtinBackends).names()
  return `${[
    '## Every command',
    markdownTable(['flag', 'variable', 'key in cli.json', 'default', 'meaning'], GLOBAL_SETTINGS.map(globalRow)),
    '## `molecule up`',
    markdownTable(
      ['flag', 'variable', 'key in molecule.yaml', 'default', 'meaning'],
      PLATFORM_SETTINGS.map((setting) =>
        settingRow(setting, FILE_KEYS.includes(setting.key) ? code(setting.key) : 'none'),
      ),
    ),
    '## `molecule connect`',
    markdownTable(
      ['flag', 'variable', 'default', 'meaning'],
      CONNECT_SETTINGS.map((setting) => settingRow(setting)),
    ),
    '## Environment variables',
    markdownTable(['variable', 'meaning'], variableRows()),
    '`molecule doctor` also checks which of these are set, to find out who pays for an agent. It never prints a value:',
    `${payerVariables().map(code).join(', ')}.`,
    '## `config.yaml` of a workspace',
    keyTable(CONFIG_KEYS),
    'Any other key at this level is kept in the file and ignored; the editor of the page names it.',
    'Keys of `runtime_config` that the platform reads:',
    keyTable(RUNTIME_CONFIG_KEYS),
    `All other keys of \`runtime_config\` are options of the backend: ${backends
      .map((name) => `[${name}](backends/${name}.md)`)
      .join(', ')}.`,
  ].join('\n\n')}\n`
}

function settingRow(setting: Setting, ...more: string[]): string[] {
  const fallback = defaultOf(setting)
  const shown = setting.default === fallback && fallback !== undefined ? code(fallback) : (fallback ?? 'none')
  const variable = setting.variable === undefined ? 'none' : code(setting.variable)
  return [code(flagsOf(setting)), variable, ...more, shown, sentence(setting.text)]
}

function globalRow(setting: Setting): string[] {
  const key = setting.key.replaceAll('-', '_')
  return settingRow(setting, (CLI_KEYS as readonly string[]).includes(key) ? code(key) : 'none')
}

const allSettings: readonly Setting[] = [...GLOBAL_SETTINGS, ...PLATFORM_SETTINGS, ...CONNECT_SETTINGS]

const variables = (): string[] => [
  ...allSettings.flatMap(({ variable }) => variable ?? []),
  ...VARIABLES.map(({ name }) => name),
]

/** A row of `VARIABLES` says more than the flag of the same variable, so it wins. */
function variableRows(): string[][] {
  const rows = new Map<string, string>()
  for (const { variable, text } of allSettings) if (variable !== undefined) rows.set(variable, text)
  for (const { name, text } of VARIABLES) rows.set(name, text)
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => [code(name), sentence(text)])
}

/** Read from the source, where they are arguments of calls. */
function payerVariables(): string[] {
  const text = readFileSync(new URL('src/cli/doctor/payers.ts', ROOT), 'utf8')
  return [...new Set([...text.matchAll(/'([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)'/g)].map(([, name = '']) => name))].sort()
}

function keyTable(keys: Readonly<Record<string, { readonly default: string; readonly text: string }>>): string {
  const rows = Object.entries(keys).map(([key, row]) => [code(key), row.default, sentence(row.text)])
  return markdownTable(['key', 'default', 'meaning'], rows)
}

function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [line(titles), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

const code = (text: string): string => `\`${text}\``

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`
