/** The options of the `mcp` backend: the server, the tool, and how the text of a message becomes its arguments. */
import { MoleculeError } from '../../errors.ts'
import { type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import { type Endpoint, readEndpoint, readStallMs } from '../endpoint.ts'
import { type BackendOptions, badOption, durationOption } from '../options.ts'

export interface McpSettings {
  readonly tool: string
  /** Exactly one of `command` and `endpoint` is set. */
  readonly command: string | undefined
  readonly endpoint: Endpoint | undefined
  readonly argument: string | undefined
  readonly template: JsonObject | undefined
  /** No option names the argument for the text, so the schema of the tool decides. */
  readonly needsSchema: boolean
  readonly stallMs: number
  readonly maxTimeMs: number | undefined
  readonly warmMax: number
  readonly warmIdleMs: number
}

/** In `arguments` this is replaced by the text of the message. */
export const TEXT_PLACEHOLDER = '{{text}}'

export function readMcpSettings(options: BackendOptions, environment: Readonly<Record<string, string>>): McpSettings {
  const command = options.get('command', '') || undefined
  const hasUrl = options.get('url', '') !== ''
  if ((command !== undefined) === hasUrl) {
    throw new MoleculeError('bad_config', 'backend options: set exactly one of "command" and "url"')
  }
  const argument = options.get('argument', '') || undefined
  const template = readTemplate(options.get('arguments', ''))
  const placesText = template !== undefined && JSON.stringify(template).includes(TEXT_PLACEHOLDER)
  return {
    tool: options.require('tool'),
    command,
    endpoint: hasUrl ? readEndpoint(options, environment) : undefined,
    argument,
    template,
    needsSchema: argument === undefined && !placesText,
    stallMs: readStallMs(options),
    maxTimeMs: durationOption(options, 'max_time', 'none'),
    warmMax: readCount(options, 'warm_max', '4'),
    warmIdleMs: durationOption(options, 'warm_idle', '10m') ?? Number.POSITIVE_INFINITY,
  }
}

function readTemplate(text: string): JsonObject | undefined {
  if (text === '') return undefined
  const value = parseJsonObject(text)
  if (value !== undefined) return value
  // Without the parser's error as the cause: it quotes the text, which may hold a secret.
  throw new MoleculeError('bad_config', 'backend option "arguments" must be a JSON object')
}

function readCount(options: BackendOptions, key: string, fallback: string): number {
  const text = options.get(key, fallback)
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw badOption(key, text, 'a positive number')
}
