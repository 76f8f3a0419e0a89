/**
 * `molecule config`: settings in this data folder. `cli.json` holds those of the commands, `molecule.yaml` those of the
 * platform, which reads it at its next start. A value is checked before it is written; the rest of the file and its
 * comments stay.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FILE_KEYS, loadConfig, PLATFORM_CONFIG_FILE, platformSetting } from '../../../config/config.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { CLI_KEYS, type CliKey, writeCliConfig } from '../../data-folder/cli-config.ts'
import { writeFileAtomically } from '../../data-folder/data-folder.ts'
import { didYouMean } from '../../terminal/near-misses.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .command('list')
    .description('list all settings, their values and their sources')
    .action(async () => list(await openContext()))
  command
    .command('get')
    .description('print one setting')
    .argument('<key>', keyList())
    .action(async (key: string) => get(await openContext(), key))
  command
    .command('set')
    .description('change one setting; without a value, restore its default')
    .argument('<key>', keyList())
    .argument('[value]', 'the new value')
    .action(async (key: string, value: string | undefined) => set(await openContext(), key, value))
}

const keyList = (): string => [...CLI_KEYS, ...FILE_KEYS].join(', ')

interface ListedSetting {
  readonly key: string
  /** Undefined where the setting has no value and its default cannot be typed. */
  readonly value: string | undefined
  /** An option, a variable, a file, or `default`. */
  readonly source: string
  /** What a list shows in place of a default that cannot be typed. */
  readonly default_text?: string
}

async function list(context: CommandContext): Promise<void> {
  const settings = await readSettings(context)
  await context.show(settings, () =>
    context.table(
      settings,
      [
        { title: 'key', of: ({ key }) => key },
        { title: 'value', of: ({ value, default_text: text }) => text ?? value },
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
  else if (FILE_KEYS.includes(key)) await writePlatformSetting(dataDir, key, value)
  else throw unknownKey(key)
  const text = value === undefined ? `${key} has its default again` : `${key} is set`
  await show(
    { key, value: value ?? null },
    () => `${text}${FILE_KEYS.includes(key) ? '; it takes effect at the next start' : ''}\n`,
  )
}

function unknownKey(key: string): MoleculeError {
  if (key === 'data-dir') {
    const message =
      'the data folder has this file in it, so it is set by MOLECULE_HOME, or by --data-dir of "molecule up"'
    return new MoleculeError('invalid_request', message)
  }
  const advice = didYouMean(key, [...CLI_KEYS, ...FILE_KEYS]) || `; the settings are ${keyList()}`
  return new MoleculeError('invalid_request', `there is no setting "${key}"${advice}`)
}

async function readSettings({ dataDir, terminal, apiUrl, output, sources }: CommandContext): Promise<ListedSetting[]> {
  const { parse } = await import('yaml')
  const file = (parse(readText(dataDir)) ?? {}) as Record<string, unknown>
  const own: ListedSetting[] = [
    { key: 'api_url', value: apiUrl, source: sources.apiUrl },
    { key: 'output', value: output, source: sources.output },
    { key: 'data-dir', value: dataDir, source: terminal.env['MOLECULE_HOME'] ? 'MOLECULE_HOME' : 'default' },
  ]
  const platform = FILE_KEYS.map((key): ListedSetting => {
    const { variable, isSecret, default: fallback, defaultText } = platformSetting(key)
    const shown = (value: unknown) => (isSecret ? '[hidden]' : String(value))
    const given = terminal.env[variable]
    if (given) return { key, value: shown(given), source: variable }
    if (file[key] === undefined) {
      const text = defaultText === undefined ? {} : { default_text: defaultText }
      return { key, value: fallback || undefined, source: 'default', ...text }
    }
    return { key, value: shown(file[key]), source: PLATFORM_CONFIG_FILE }
  })
  return [...own, ...platform]
}

async function writePlatformSetting(dataDir: string, key: string, value: string | undefined): Promise<void> {
  if (value !== undefined) await checkPlatformSetting(dataDir, key, value)
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

/** Throws where `up` would refuse the value. */
async function checkPlatformSetting(dataDir: string, key: string, value: string): Promise<void> {
  try {
    await loadConfig({ flags: { 'data-dir': dataDir, [key]: value }, env: {} })
  } catch (thrown) {
    const { code, message } = toMoleculeError(thrown)
    // No flag was typed.
    throw new MoleculeError(code, message.replace(`setting "${key}" from --${key} `, `${key} `), { cause: thrown })
  }
}

function readText(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, PLATFORM_CONFIG_FILE), 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw cause
  }
}
