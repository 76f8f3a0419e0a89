/** The options of the `openai` backend. Without a URL it is OpenAI itself, and then its usual variable is the key. */
import { MoleculeError } from '../../errors.ts'
import { type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import { type Endpoint, readAuthHeaders, readStallMs, readUrl } from '../endpoint.ts'
import { type BackendOptions, createOptions } from '../options.ts'

export interface OpenaiSettings extends Endpoint {
  readonly model: string | undefined
  readonly params: JsonObject
}

const OPENAI_URL = 'https://api.openai.com/v1'
const OPENAI_VARIABLE = 'OPENAI_API_KEY'

export function readOpenaiSettings(
  options: BackendOptions,
  environment: Readonly<Record<string, string>>,
): OpenaiSettings {
  const given = options.get('url', options.get('base_url', ''))
  const url = readUrl(given || OPENAI_URL)
  return {
    url: baseOf(url),
    stallMs: readStallMs(options),
    headers: readAuthHeaders(withDefaultKey(options, given === ''), environment),
    model: options.get('model', '') || undefined,
    params: readParams(options.get('params', '')),
  }
}

/** People paste the base or the whole address of the call; both are understood. */
const baseOf = (url: string): string => url.replace(/\/+$/, '').replace(/\/chat\/completions$/, '')

/** OpenAI's key is for OpenAI: an endpoint of somebody else gets only what was named for it. */
function withDefaultKey(options: BackendOptions, isOpenai: boolean): BackendOptions {
  const named = options.get('token_file', '') !== '' || options.get('token_env', '') !== ''
  if (!isOpenai || named) return options
  return createOptions({ headers: options.get('headers', ''), token_env: OPENAI_VARIABLE })
}

const OWN_FIELDS: ReadonlySet<string> = new Set(['messages', 'stream', 'model'])

function readParams(text: string): JsonObject {
  if (text === '') return {}
  const value = parseJsonObject(text)
  if (value === undefined) throw new MoleculeError('bad_config', 'backend option "params" must be a JSON object')
  const own = Object.keys(value).find((key) => OWN_FIELDS.has(key))
  if (own === undefined) return value
  throw new MoleculeError('bad_config', `backend option "params" cannot set "${own}": the platform does`)
}
