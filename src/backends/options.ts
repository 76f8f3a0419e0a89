/**
 * Backend options: a map of strings, as `--backend-opt KEY=VALUE` and `runtime_config` give them. A backend reads its
 * own keys and ignores the rest, so that an unknown key does not break an existing setup.
 */
import { parseDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'

export interface BackendOptions {
  /** The value, or the fallback if the key is missing or empty. */
  get(key: string, fallback: string): string
  /** The value. Throws an error that names the key if it is missing or empty. */
  require(key: string): string
  readonly keys: readonly string[]
}

/** Options of every backend (hooks.ts). */
const COMMON_OPTIONS: Readonly<Record<string, string>> = {
  before_turn: 'a command that runs before each turn, with JSON on stdin; exit code 2 refuses the message',
  after_turn: 'a command that runs after each answer, with JSON on stdin',
  on_error: 'a command that runs after each failed turn, with JSON on stdin',
  hook_timeout: 'how long each of these commands may take (10s)',
}

export function createOptions(values: Readonly<Record<string, string>>): BackendOptions {
  return {
    get: (key, fallback) => ownValue(values, key) || fallback,
    require(key) {
      const value = ownValue(values, key)
      if (value) return value
      throw new MoleculeError('bad_config', `backend option "${key}" is required`, { details: { key } })
    },
    keys: Object.keys(values),
  }
}

/** `true` or `false`, in upper or lower case. Any other value throws: a typo must not silently mean "off". */
export function booleanOption(options: BackendOptions, key: string, fallback: boolean): boolean {
  const text = options.get(key, String(fallback)).toLowerCase()
  if (text === 'true' || text === 'false') return text === 'true'
  throw badOption(key, options.get(key, ''), 'true or false')
}

/** Milliseconds; undefined for `none`. */
export function durationOption(options: BackendOptions, key: string, fallback: string): number | undefined {
  const text = options.get(key, fallback)
  if (text === 'none') return undefined
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0) return ms
  throw badOption(key, text, 'a positive duration such as 300ms, 90s or 5m, or none')
}

/** The error for an invalid value. It quotes the value and says which values are valid. */
export function badOption(key: string, value: string, expected: string): MoleculeError {
  const message = `backend option "${key}": ${JSON.stringify(value)} is not ${expected}`
  return new MoleculeError('bad_config', message, { details: { key, value } })
}

/** The keys that the backend ignores, sorted. The caller warns the owner about them. */
export function unknownOptionKeys(
  definition: { readonly options: Readonly<Record<string, string>> },
  values: Readonly<Record<string, string>>,
): string[] {
  return Object.keys(values)
    .filter((key) => !Object.hasOwn(definition.options, key) && !Object.hasOwn(COMMON_OPTIONS, key))
    .sort()
}

/** Without the check, `constructor` would be an option that is always set. */
function ownValue(values: Readonly<Record<string, string>>, key: string): string {
  return Object.hasOwn(values, key) ? (values[key] ?? '') : ''
}
