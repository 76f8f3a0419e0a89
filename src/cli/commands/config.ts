/**
 * `molecule config`: settings of this data folder. Those of the commands are in `cli.json`, those of the platform in
 * `molecule.yaml`, which is read at its next start; a value is checked before it is written, and the rest of the file,
 * comments too, stays as it was.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { environmentName, FILE_KEYS, loadConfig, PLATFORM_CONFIG_FILE } from '../../config/config.ts'
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { CLI_KEYS, type CliKey, readCliConfig, writeCliConfig } from '../data-folder/cli-config.ts'
import { writeFileAtomically } from '../data-folder/data-folder.ts'
import { renderTable } from '../terminal/output.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list all settings, their values and where each comes from')
    .action(async () => list(await openContext()))
  command
    .command('get')
    .description('print one setting')
    .argument('<key>', keyList())
    .action(async (key: string) => get(await openContext(), key))
  command
    .command('set')
    .description('change one setting; without a value it goes back to its default')
    .argument('<key>', keyList())
    .argument('[value]', 'the new value')
    .action(async (key: string, value: string | undefined) => set(await openContext(), key, value))
}

const platformKeys = (): string[] => [...FILE_KEYS].sort()
const keyList = (): string => [...CLI_KEYS, ...platformKeys()].join(', ')

interface Setting {
  readonly key: string
  readonly value: string | undefined
  /** A file, a variable, or nowhere: then the default is in force. */
  readonly source: string
}

async function list(context: CommandContext): Promise<void> {
  const settings = await readSettings(context)
  await context.show(settings, () =>
    renderTable(
      settings,
      [
        { title: 'key', of: ({ key }) => key },
        { title: 'value', of: ({ value }) => value },
        { title: 'from', of: ({ source }) => source },
      ],
      'There are no settings.',
    ),
  )
}

async function get(context: CommandContext, key: string): Promise<void> {
  const setting = (await readSettings(context)).find((one) => one.key === key)
  if (setting === undefined) throw unknownKey(key)
  await context.show(setting, () => (setting.value === undefined ? '' : `${setting.value}\n`))
}

async function set({ dataDir, show }: CommandContext, key: string, value: string | undefined): Promise<void> {
  if ((CLI_KEYS as readonly string[]).includes(key)) writeCliConfig(dataDir, key as CliKey, value)
  else if (FILE_KEYS.has(key)) await writePlatformSetting(dataDir, key, value)
  else throw unknownKey(key)
  const text = value === undefined ? `${key} is at its default again` : `${key} is set`
  await show({ key, value: value ?? null }, () => `${text}${FILE_KEYS.has(key) ? '; the next start reads it' : ''}\n`)
}

function unknownKey(key: string): MoleculeError {
  return new MoleculeError('invalid_request', `there is no setting "${key}"; there are ${keyList()}`)
}

/** A password may stand in it. */
const SECRET_KEYS: ReadonlySet<string> = new Set(['database'])

async function readSettings({ dataDir, terminal, apiUrl, output }: CommandContext): Promise<Setting[]> {
  const cli = readCliConfig(dataDir)
  const { parse } = await import('yaml')
  const file = (parse(readText(dataDir)) ?? {}) as Record<string, unknown>
  const own: Setting[] = [
    { key: 'api_url', value: apiUrl, source: cli.api_url === apiUrl ? 'cli.json' : 'found' },
    { key: 'output', value: output, source: cli.output === output ? 'cli.json' : 'default or option' },
  ]
  const platform = platformKeys().map((key): Setting => {
    const variable = terminal.env[environmentName(key)]
    const hidden = (value: unknown) => (SECRET_KEYS.has(key) ? '[hidden]' : String(value))
    if (variable) return { key, value: hidden(variable), source: environmentName(key) }
    if (file[key] === undefined) return { key, value: undefined, source: 'default' }
    return { key, value: hidden(file[key]), source: PLATFORM_CONFIG_FILE }
  })
  return [...own, ...platform]
}

async function writePlatformSetting(dataDir: string, key: string, value: string | undefined): Promise<void> {
  if (value !== undefined) await loadConfig({ flags: { 'data-dir': dataDir, [key]: value }, env: {} })
  const { parseDocument } = await import('yaml')
  const document = parseDocument(readText(dataDir))
  const [problem] = document.errors
  if (problem)
    throw new MoleculeError('bad_config', `${join(dataDir, PLATFORM_CONFIG_FILE)}: ${problem.message.split('\n')[0]}`)
  if (value !== undefined) document.set(key, value)
  else if (document.has(key)) document.delete(key)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileAtomically(join(dataDir, PLATFORM_CONFIG_FILE), document.toString())
}

function readText(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, PLATFORM_CONFIG_FILE), 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw cause
  }
}
