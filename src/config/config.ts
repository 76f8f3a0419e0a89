/**
 * One load of the platform's settings: flags > environment > `<data-dir>/molecule.yaml` > default, from `unknown` to a
 * frozen typed value. Every setting is one row of a table, and an error names the key and where its value came from.
 * An empty environment variable counts as unset, because that is how compose files and shells write "not given".
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'
import type { LogLevel } from '../log.ts'

export interface PlatformConfig {
  readonly port: number
  readonly host: string
  readonly dataDir: string
  readonly logLevel: LogLevel
  /** `postgres://...`; undefined = the embedded store in the data folder. */
  readonly database: string | undefined
  /** How long running turns may go on after the first signal. */
  readonly drainMs: number
  /** How long a blocking call waits before it answers with the task as it is. */
  readonly maxBlockMs: number
  /** Host names, addresses and ranges that URLs given by others may lead to though they are inside. */
  readonly allowOutbound: readonly string[]
}

export interface ConfigSources {
  /** By long name without dashes, as typed: `{ port: '0', 'data-dir': '/tmp/d' }`. */
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
}

export const PLATFORM_CONFIG_FILE = 'molecule.yaml'

export async function loadConfig(sources: ConfigSources): Promise<PlatformConfig> {
  const dataDir = loadDataDir(sources)
  const file = await readConfigFile(join(dataDir, PLATFORM_CONFIG_FILE))
  const setting = <T>(key: string, parse: (value: unknown) => T, fallback: T): T => {
    const found = findSetting(key, sources, file)
    return found === undefined ? fallback : parseSetting(key, found, parse)
  }
  return Object.freeze({
    port: setting('port', toPort, 8080),
    host: setting('host', toText, '127.0.0.1'),
    dataDir,
    logLevel: setting('log-level', toLogLevel, 'info'),
    database: setting<string | undefined>('database', toDatabase, undefined),
    drainMs: setting('drain', toDurationMs, 10_000),
    maxBlockMs: setting('max-block', toDurationMs, 120_000),
    allowOutbound: setting<readonly string[]>('allow-outbound', toList, []),
  })
}

/** Where the data lives, from flag and environment alone: the file lies inside it and cannot say where it is. */
export function loadDataDir(sources: ConfigSources): string {
  const found = findSetting('data-dir', sources, undefined)
  if (found === undefined) return join(homedir(), '.molecule')
  return resolve(parseSetting('data-dir', found, toText))
}

interface FoundSetting {
  readonly value: unknown
  /** For the error: `--port`, `MOLECULE_PORT`, `/path/molecule.yaml`. */
  readonly source: string
}

interface SettingsFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

/** Settings that the file may hold; `data-dir` is not among them. */
export const FILE_KEYS: ReadonlySet<string> = new Set([
  'port',
  'host',
  'database',
  'log-level',
  'drain',
  'max-block',
  'allow-outbound',
])

/** Names that the world had before us. */
const ENVIRONMENT_NAMES: Readonly<Record<string, string>> = { 'data-dir': 'MOLECULE_HOME', database: 'DATABASE_URL' }

/** The environment variable of a setting. */
export function environmentName(key: string): string {
  return ENVIRONMENT_NAMES[key] ?? `MOLECULE_${key.toUpperCase().replaceAll('-', '_')}`
}

/** Settings that may hold a password and are never shown. */
const SECRET_KEYS: ReadonlySet<string> = new Set(['database'])

function findSetting(key: string, sources: ConfigSources, file: SettingsFile | undefined): FoundSetting | undefined {
  const flag = sources.flags[key]
  if (flag !== undefined) return { value: flag, source: `--${key}` }
  const name = environmentName(key)
  const variable = sources.env[name]
  if (variable !== undefined && variable !== '') return { value: variable, source: name }
  if (file && Object.hasOwn(file.values, key)) return { value: file.values[key], source: file.path }
  return undefined
}

function parseSetting<T>(key: string, found: FoundSetting, parse: (value: unknown) => T): T {
  try {
    return parse(found.value)
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    const shown = SECRET_KEYS.has(key) ? 'what it is' : JSON.stringify(found.value)
    throw new MoleculeError('bad_config', `setting "${key}" from ${found.source} cannot be ${shown}: ${problem}`, {
      cause,
      details: { key, source: found.source },
    })
  }
}

async function readConfigFile(path: string): Promise<SettingsFile | undefined> {
  const text = readTextIfThere(path)
  if (text === undefined) return undefined
  // Most have no file, and every command that asks only for the data folder needs no parser either.
  const { parseDocument } = await import('yaml')
  const document = parseDocument(text)
  const [problem] = document.errors
  if (problem) throw badFile(path, problem.message.split('\n')[0] ?? problem.code, problem)
  const values: unknown = document.toJS()
  if (values === null) return undefined
  if (typeof values !== 'object' || Array.isArray(values)) throw badFile(path, 'it must be a map of settings')
  for (const key of Object.keys(values)) {
    if (FILE_KEYS.has(key)) continue
    const known = [...FILE_KEYS].sort().join(', ')
    throw badFile(path, `setting "${key}" is not one of ${known}`)
  }
  return { path, values: values as Record<string, unknown> }
}

function badFile(path: string, problem: string, cause?: unknown): MoleculeError {
  return new MoleculeError('bad_config', `${path}: ${problem}`, { cause, details: { source: path } })
}

function readTextIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw badFile(path, `it cannot be read (${code ?? 'unknown error'})`, cause)
  }
}

function toText(value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw new TypeError('it must be a text that is not empty')
}

/** `a, b` as a flag or variable has it, or a list as the file may. */
function toList(value: unknown): readonly string[] {
  const entries: unknown = typeof value === 'string' ? value.split(',') : value
  if (!Array.isArray(entries) || !entries.every((entry) => typeof entry === 'string')) {
    throw new TypeError('it must be a list of texts')
  }
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '')
}

function toDatabase(value: unknown): string {
  if (typeof value === 'string' && /^postgres(ql)?:\/\//.test(value) && URL.canParse(value)) return value
  throw new TypeError('it must be a URL that begins with postgres://')
}

function toPort(value: unknown): number {
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value
  if (typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new TypeError('it must be a whole number from 0 (any free port) to 65535')
}

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

function toLogLevel(value: unknown): LogLevel {
  const level = LOG_LEVELS.find((known) => known === value)
  if (level) return level
  throw new TypeError(`it must be one of ${LOG_LEVELS.join(', ')}`)
}

/** `10s` in Go syntax; a bare number, which YAML gives as such, is seconds. */
function toDurationMs(value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value * 1000
  const durationMs = parseDuration(toText(value))
  if (durationMs !== undefined && durationMs >= 0) return durationMs
  throw new TypeError('it must be a duration like 10s, 2m30s or 0')
}
