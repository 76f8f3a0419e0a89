/**
 * The options that all backends with an HTTP endpoint share: URL, timeout and credentials. An option names the file or
 * the variable of a token, never the token itself. The token is read at each call, so that a renewed one is used.
 * Invariant: no token is in a setting, an error or a log.
 */
import { readFile } from 'node:fs/promises'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { parseJsonObject } from '../protocol/json.ts'
import { type BackendOptions, durationOption } from './options.ts'

export interface Endpoint {
  readonly url: string
  readonly stallMs: number
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

/** With `none` a turn still fails after this time, because an endpoint that hangs must free its conversation. */
const STALL_NONE_MS = 600_000

/** Shared by the option maps of these backends. */
export const ENDPOINT_OPTIONS = {
  token_file: 'the file with the bearer token',
  token_env: "the name of the variable with the bearer token, in the platform's environment",
  headers: 'more HTTP headers, as a JSON object',
  timeout: 'how long the endpoint may send nothing, e.g. 30s, 5m, or none (5m)',
} as const

export function readEndpoint(options: BackendOptions, environment: Readonly<Record<string, string>>): Endpoint {
  return {
    url: readUrl(options.require('url')),
    stallMs: readStallMs(options),
    headers: readAuthHeaders(options, environment),
  }
}

/** The headers with the credentials, read again at each call. */
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

/**
 * The error of a call for people: an endpoint that refuses connections, or whose name is unknown, is away and not late.
 * `remote`: the endpoint is an agent and not a model provider.
 */
export function endpointError(thrown: unknown, { remote = false } = {}): MoleculeError {
  const error = toMoleculeError(thrown)
  if (error.details['unreachable'] === undefined) return error
  const { message, retryable, details } = error
  const about = { ...details, ...(remote && { remote }) }
  return new MoleculeError('provider_unreachable', message, { retryable, cause: error, details: about })
}

export function readUrl(text: string, option = 'url'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits = (url?.protocol === 'http:' || url?.protocol === 'https:') && url.username === '' && url.password === ''
  if (fits) return text
  // The message does not quote the URL, because it may contain a password.
  throw new MoleculeError(
    'bad_config',
    `backend option "${option}" must be an http or https URL without a password in it`,
  )
}

export function readStallMs(options: BackendOptions): number {
  return durationOption(options, 'timeout', '5m') ?? STALL_NONE_MS
}

function readHeaders(text: string): Record<string, string> {
  if (text === '') return {}
  const value = parseJsonObject(text)
  if (value !== undefined && Object.entries(value).every(isHeader)) return value as Record<string, string>
  // Without the parser's error as the cause: it quotes the text, which may hold a secret.
  throw new MoleculeError('bad_config', 'backend option "headers" must be a JSON object with string values')
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
  throw new MoleculeError('bad_config', `${where} contains no valid token`)
}
