/**
 * Loads the settings of the platform once: flag, else environment variable, else `<data-dir>/molecule.yaml`, else the
 * default of `settings.ts`. The result is frozen and typed; an error names the key and the source of its value.
 * An empty environment variable counts as unset, because compose files and shells write "not given" that way.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'
import type { LogLevel } from '../log.ts'
import { PLATFORM_SETTINGS, type PlatformSettingKey, type Setting } from './settings.ts'

export interface PlatformConfig {
  readonly port: number
  /** Of the gRPC door; undefined = no gRPC. */
  readonly grpcPort: number | undefined
  readonly host: string
  /** Origins by which other machines reach the platform; links and cards show the first. */
  readonly publicUrls: readonly string[]
  /** Addresses and ranges of proxies whose `X-Forwarded-*` headers count. */
  readonly trustedProxies: readonly string[]
  readonly dataDir: string
  readonly logLevel: LogLevel
  /** `postgres://...`; undefined = the embedded store in the data folder. */
  readonly database: string | undefined
  /** How long running turns may continue after the first signal. */
  readonly drainMs: number
  /** How long a blocking call waits before it answers with the unfinished task. */
  readonly maxBlockMs: number
  /** Private host names, addresses and ranges that URLs given by callers may lead to. */
  readonly allowOutbound: readonly string[]
  /** With less free space on the disk of the data folder, new messages are refused; 0 = no limit. */
  readonly minFreeBytes: number
  /** Whether processes of turns get cgroups of their own, where the system allows it. */
  readonly usesCgroups: boolean
  /** Turns the file of a voice note into text; undefined = voice notes stay files. */
  readonly voiceCommand: string | undefined
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
  const load = <T>(key: PlatformSettingKey, parse: (value: unknown) => T): T =>
    parseSetting(key, findSetting(key, sources, file), parse)
  const port = load('port', toPort)
  return Object.freeze({
    port,
    grpcPort: load('grpc-port', (value) => toOtherPort(value, port)),
    host: load('host', toText),
    publicUrls: load('public-url', toPublicUrls),
    trustedProxies: load('trusted-proxy', toRanges),
    dataDir,
    logLevel: load('log-level', toLogLevel),
    database: load('database', toDatabase),
    drainMs: load('drain', toDurationMs),
    maxBlockMs: load('max-block', toDurationMs),
    allowOutbound: load('allow-outbound', toList),
    minFreeBytes: load('min-free-space', toBytes),
    usesCgroups: load('cgroups', toCgroupsMode),
    voiceCommand: load('voice-command', (value) => (value === undefined ? undefined : toText(value))),
  })
}

/** From flag and environment alone: `molecule.yaml` lies in this folder and cannot say where it is. */
export function loadDataDir(sources: ConfigSources): string {
  const folder = parseSetting('data-dir', findSetting('data-dir', sources, undefined), toText)
  return folder === platformSetting('data-dir').default ? join(homedir(), '.molecule') : resolve(folder)
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

/** Keys of `molecule.yaml`, in alphabetical order. */
export const FILE_KEYS: readonly string[] = PLATFORM_SETTINGS.map(({ key }) => key)
  .filter((key) => key !== 'data-dir')
  .sort()

export function platformSetting(key: string): Setting & { readonly variable: string } {
  const setting = PLATFORM_SETTINGS.find((known) => known.key === key)
  if (setting === undefined) throw new MoleculeError('internal', `there is no setting "${key}"`)
  return setting
}

function findSetting(key: string, sources: ConfigSources, file: SettingsFile | undefined): FoundSetting {
  const flag = sources.flags[key]
  if (flag !== undefined) return { value: flag, source: `--${key}` }
  const { variable, default: fallback } = platformSetting(key)
  const text = sources.env[variable]
  if (text !== undefined && text !== '') return { value: text, source: variable }
  if (file && Object.hasOwn(file.values, key)) return { value: file.values[key], source: file.path }
  return { value: fallback, source: 'its default' }
}

function parseSetting<T>(key: string, found: FoundSetting, parse: (value: unknown) => T): T {
  try {
    return parse(found.value)
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    const shown = platformSetting(key).isSecret ? 'this value' : JSON.stringify(found.value)
    const code = found.source.startsWith('--') ? 'invalid_request' : 'bad_config'
    throw new MoleculeError(code, `setting "${key}" from ${found.source} cannot be ${shown}: ${problem}`, {
      cause,
      details: { key, source: found.source },
    })
  }
}

async function readConfigFile(path: string): Promise<SettingsFile | undefined> {
  const text = readTextIfThere(path)
  if (text === undefined) return undefined
  // Loads the YAML parser only when there is a file: most installations have none.
  const { parseDocument } = await import('yaml')
  const document = parseDocument(text)
  const [problem] = document.errors
  if (problem) throw badFile(path, problem.message.split('\n')[0] ?? problem.code, problem)
  const values: unknown = document.toJS()
  if (values === null) return undefined
  if (typeof values !== 'object' || Array.isArray(values)) throw badFile(path, 'it must be a map of settings')
  for (const key of Object.keys(values)) {
    if (!FILE_KEYS.includes(key)) throw badFile(path, `setting "${key}" is not one of ${FILE_KEYS.join(', ')}`)
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
  throw new TypeError('it must be a non-empty text')
}

/** `a, b` from a flag or variable, or a YAML list from the file. */
function toList(value: unknown): readonly string[] {
  const entries: unknown = typeof value === 'string' ? value.split(',') : value
  if (!Array.isArray(entries) || !entries.every((entry) => typeof entry === 'string')) {
    throw new TypeError('it must be a list of texts')
  }
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '')
}

/** `https://name` each: the page and the API are at the root of a host, and links are built from it. */
function toPublicUrls(value: unknown): readonly string[] {
  return toList(value).map((text) => {
    const url = isHttpUrl(text) ? new URL(text) : undefined
    if (url === undefined || url.username !== '' || url.password !== '')
      throw new TypeError('each must be a URL such as https://molecule.example.org')
    if (url.href !== `${url.origin}/`) throw new TypeError('a public URL has no path, because the page is at its root')
    return url.origin
  })
}

function toRanges(value: unknown): readonly string[] {
  const ranges = toList(value)
  if (ranges.every(isRange)) return ranges
  throw new TypeError('each must be an address or a range such as 127.0.0.1 or 10.0.0.0/8')
}

function isRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const bitsMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return bitsMax > 0 && more.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax))
}

function toDatabase(value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && /^postgres(ql)?:\/\//.test(value) && URL.canParse(value)) return value
  throw new TypeError('it must be a URL that begins with postgres://')
}

function toPort(value: unknown): number {
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value
  if (typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new TypeError('it must be a whole number from 0 (any free port) to 65535')
}

/** Undefined for none. */
function toOtherPort(value: unknown, takenPort: number): number | undefined {
  if (value === undefined) return undefined
  const port = toPort(value)
  if (port === 0 || port !== takenPort) return port
  throw new TypeError('it must not be the port of HTTP')
}

/** False for `off`, which YAML may also read as a boolean. */
function toCgroupsMode(value: unknown): boolean {
  if (value === 'auto') return true
  if (value === 'off' || value === false) return false
  throw new TypeError('it must be auto or off')
}

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

function toLogLevel(value: unknown): LogLevel {
  const level = LOG_LEVELS.find((known) => known === value)
  if (level) return level
  throw new TypeError(`it must be one of ${LOG_LEVELS.join(', ')}`)
}

/** `10s` in Go syntax. A bare number, which only the file can give, is seconds. */
function toDurationMs(value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value * 1000
  const durationMs = parseDuration(toText(value))
  if (durationMs !== undefined && durationMs >= 0) return durationMs
  throw new TypeError('it must be a duration like 10s, 2m30s or 0')
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
}

/** `500MiB`, `2GB`, or a number of bytes. */
function toBytes(value: unknown): number {
  const [, amount, unit = ''] = /^(\d{1,12})\s?([A-Za-z]*)$/.exec(String(value).trim()) ?? []
  const factor = Object.hasOwn(SIZE_UNITS, unit) ? SIZE_UNITS[unit] : undefined
  if (amount !== undefined && factor !== undefined) return Number(amount) * factor
  throw new TypeError('it must be a size like 500MiB, 2GB or 0')
}

/** For settings and flags that name a platform. */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}
