/**
 * The options that every backend with an HTTP endpoint shares: where it is, what it may take, and how we log in there.
 * Credentials are named (a file, a variable) and read when they are needed, so that a renewed token is used and none
 * stands in a setting, an error or a log.
 */
import { readFile } from 'node:fs/promises'
import { parseDuration } from '../duration.ts'
import { MoleculeError } from '../errors.ts'
import { isJsonObject } from '../protocol/json.ts'
import { type BackendOptions, badOption } from './options.ts'

export interface Endpoint {
  readonly url: string
  readonly stallMs: number
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

const STALL_DEFAULT = '5m'
/** `none` is not for ever: an endpoint that hangs must free its conversation. */
const STALL_NONE_MS = 600_000

/** What the option map calls things; the words around them are the same everywhere. */
export const ENDPOINT_OPTIONS = {
  token_file: 'a file that holds the bearer token for it',
  token_env: "the name of the platform's variable that holds the bearer token for it",
  headers: 'more headers for it, as a JSON object',
  timeout: 'how long it may give no sign of life, e.g. 30s, 5m, or none (5m)',
} as const

export function readEndpoint(options: BackendOptions, environment: Readonly<Record<string, string>>): Endpoint {
  return {
    url: readUrl(options.require('url')),
    stallMs: readStallMs(options),
    headers: readAuthHeaders(options, environment),
  }
}

/** The headers that log us in, read anew at each call. */
export function readAuthHeaders(
  options: BackendOptions,
  environment: Readonly<Record<string, string>>,
): Endpoint['headers'] {
  const tokenFile = options.get('token_file', '')
  const tokenEnv = options.get('token_env', '')
  if (tokenFile !== '' && tokenEnv !== '') {
    throw new MoleculeError('bad_config', 'backend options "token_file" and "token_env" cannot both be set')
  }
  const fixed = readHeaders(options.get('headers', ''))
  return async () => {
    const token = tokenFile === '' ? readVariable(tokenEnv, environment) : await readToken(tokenFile)
    return token === undefined ? fixed : { ...fixed, Authorization: `Bearer ${token}` }
  }
}

export function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits = (url?.protocol === 'http:' || url?.protocol === 'https:') && url.username === '' && url.password === ''
  if (fits) return text
  // The value is not quoted: where a password stands in it, it must not be shown.
  throw new MoleculeError('bad_config', 'backend option "url" must be an http or https URL without a password in it')
}

export function readStallMs(options: BackendOptions): number {
  const text = options.get('timeout', STALL_DEFAULT)
  if (text === 'none') return STALL_NONE_MS
  const stallMs = parseDuration(text)
  if (stallMs !== undefined && stallMs > 0) return stallMs
  throw badOption('timeout', text, 'a positive duration such as 30s or 5m, or none')
}

function readHeaders(text: string): Record<string, string> {
  if (text === '') return {}
  const problem = new MoleculeError('bad_config', 'backend option "headers" must be a JSON object of texts')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's words would quote what may be a secret.
    throw problem
  }
  if (!isJsonObject(value) || !Object.entries(value).every(isHeader)) throw problem
  return value as Record<string, string>
}

const isHeader = ([name, value]: [string, unknown]): boolean =>
  /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

async function readToken(path: string): Promise<string> {
  try {
    return checkToken((await readFile(path, 'utf8')).trim(), 'the file of "token_file"')
  } catch (cause) {
    if (cause instanceof MoleculeError) throw cause
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new MoleculeError('bad_config', `the file of "token_file" cannot be read (${code})`, { cause })
  }
}

function readVariable(name: string, environment: Readonly<Record<string, string>>): string | undefined {
  return name === '' ? undefined : checkToken(environment[name] ?? '', `the variable ${name} of "token_env"`)
}

function checkToken(token: string, where: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new MoleculeError('bad_config', `${where} holds no token`)
}
