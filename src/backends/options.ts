/**
 * Backend options: a map of strings, as `--backend-opt KEY=VALUE` and `runtime_config` give them. A backend reads its
 * own keys and ignores the rest, so that adding a key breaks nobody's set-up.
 */
import { MoleculeError } from '../errors.ts'

export interface BackendOptions {
  /** The value, or the fallback where it is missing or empty. */
  get(key: string, fallback: string): string
  /** The value; missing or empty fails with the key's name. */
  require(key: string): string
  readonly keys: readonly string[]
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

/** `true` or `false` in any case; anything else is refused, because a typo must not silently mean "off". */
export function booleanOption(options: BackendOptions, key: string, fallback: boolean): boolean {
  const text = options.get(key, String(fallback)).toLowerCase()
  if (text === 'true' || text === 'false') return text === 'true'
  throw badOption(key, options.get(key, ''), 'true or false')
}

/** The error for a value that cannot work: it quotes the value and says what would. */
export function badOption(key: string, value: string, expected: string): MoleculeError {
  const message = `backend option "${key}": ${JSON.stringify(value)} is not ${expected}`
  return new MoleculeError('bad_config', message, { details: { key, value } })
}

/** The keys that the backend does not know and will ignore, sorted: for whoever configures it to be warned of. */
export function unknownOptionKeys(
  definition: { readonly options: Readonly<Record<string, string>> },
  values: Readonly<Record<string, string>>,
): string[] {
  return Object.keys(values)
    .filter((key) => !Object.hasOwn(definition.options, key))
    .sort()
}

/** Only the map's own keys: `constructor` is an option nobody set. */
function ownValue(values: Readonly<Record<string, string>>, key: string): string {
  return Object.hasOwn(values, key) ? (values[key] ?? '') : ''
}
