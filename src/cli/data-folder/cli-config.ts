/**
 * Settings of the commands in this data folder (`molecule config set`): `cli.json`, a map of known keys. JSON and not
 * YAML, because every command reads it and loading the YAML parser takes time.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isHttpUrl } from '../../config/config.ts'
import { MoleculeError } from '../../errors.ts'
import { OUTPUT_FORMATS } from '../terminal/output.ts'
import { writeFileAtomically } from './data-folder.ts'

export interface CliConfig {
  readonly api_url?: string
  readonly output?: string
}

export const CLI_KEYS = ['api_url', 'output'] as const

export type CliKey = (typeof CLI_KEYS)[number]

export const CLI_CONFIG_FILE = 'cli.json'

const cliConfigPath = (dataDir: string): string => join(dataDir, CLI_CONFIG_FILE)

export function readCliConfig(dataDir: string): CliConfig {
  const path = cliConfigPath(dataDir)
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof value !== 'object' || value === null) throw new TypeError('it must be a map of settings')
    const entries = Object.entries(value)
    for (const [key, setting] of entries) checkSetting(key as CliKey, setting)
    return Object.fromEntries(entries) as CliConfig
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new MoleculeError('bad_config', `${path}: ${problem}; correct it or remove it`, { cause })
  }
}

/** Undefined removes the setting. */
export function writeCliConfig(dataDir: string, key: CliKey, value: string | undefined): void {
  if (value !== undefined) checkSetting(key, value, 'invalid_request')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const settings = { ...readCliConfig(dataDir), [key]: value }
  writeFileAtomically(cliConfigPath(dataDir), `${JSON.stringify(settings, null, 2)}\n`)
}

function checkSetting(key: CliKey, value: unknown, code: 'bad_config' | 'invalid_request' = 'bad_config'): void {
  if (!CLI_KEYS.includes(key)) throw new MoleculeError(code, `"${key}" is not one of ${CLI_KEYS.join(', ')}`)
  const fits =
    key === 'output'
      ? (OUTPUT_FORMATS as readonly unknown[]).includes(value)
      : typeof value === 'string' && isHttpUrl(value)
  if (fits) return
  const wanted = key === 'output' ? OUTPUT_FORMATS.join(', ') : 'an http address'
  throw new MoleculeError(code, `${key} cannot be ${JSON.stringify(value)}; it must be ${wanted}`)
}
