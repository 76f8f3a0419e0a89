/** The options of the `openai` backend. Without a URL it is OpenAI itself, with the key from its usual variable. */
import { MoleculeError } from '../../errors.ts'
import { type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import { trimEndOf } from '../../trim-end.ts'
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
  const setUrl = options.get('url', options.get('base_url', ''))
  const url = readUrl(setUrl || OPENAI_URL)
  return {
    url: baseOf(url),
    stallMs: readStallMs(options),
    headers: readAuthHeaders(withDefaultKey(options, setUrl === ''), environment),
    model: options.get('model', '') || undefined,
    params: readParams(options.get('params', '')),
  }
}

/** Accepts the base URL and the full URL of the call, because people paste both. */
const baseOf = (url: string): string => trimEndOf(url, '/').replace(/\/chat\/completions$/, '')

/** OpenAI's key goes only to OpenAI. Another endpoint gets only the key that was set for it. */
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
  throw new MoleculeError('bad_config', `backend option "params" cannot set "${own}": the platform sets it`)
}
