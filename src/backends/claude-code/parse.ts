/**
 * Parses what claude prints: the lines of stream-json, and the one object of json. Pure. An unknown message counts as
 * `alive` and nothing else, so that a newer claude with more messages still works.
 */
import { diffOfFile, diffOfHunks, type FileDiff } from '../../protocol/file-diff.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import { subjectOfInput } from '../engine/tool-use.ts'

/** A longer line of output ends the process. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024

export type ClaudeEvent =
  /** claude has taken the message. Sent before every turn. */
  | { readonly type: 'init'; readonly sessionId: string }
  /** A new block of text begins. */
  | { readonly type: 'paragraph' }
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool_started'; readonly id: string; readonly name: string; readonly subject: string }
  | {
      readonly type: 'tool_ended'
      readonly id: string
      readonly failed: boolean
      readonly diffs?: readonly FileDiff[]
    }
  | { readonly type: 'retrying'; readonly text: string }
  | { readonly type: 'limit'; readonly resetsAtMs: number }
  | {
      readonly type: 'ask'
      readonly requestId: string
      readonly toolUseId: string
      readonly tool: string
      readonly input: JsonObject
    }
  | { readonly type: 'ask_withdrawn'; readonly requestId: string }
  | { readonly type: 'result'; readonly result: ClaudeResult }
  | { readonly type: 'alive' }

export interface ClaudeResult {
  readonly sessionId: string
  readonly isError: boolean
  /** The kind of end. Also `success` for an error of the provider. */
  readonly subtype: string
  /** The answer, or the error message. */
  readonly text: string
  /** The model, or a filter before it, refused to answer. */
  readonly isRefusal: boolean
  readonly status: number | undefined
  readonly deniedTools: readonly string[]
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  /** Cost of this turn; undefined if claude reports only the cost of the session. */
  readonly costUsd: number | undefined
  /** Cost of the session so far. */
  readonly sessionCostUsd: number | undefined
  /** Messages that wait behind the turn that ended. Ours is among them if claude had begun a turn by itself. */
  readonly queued: number
}

/** Undefined for a line that is not a JSON object. */
export function parseLine(line: string): readonly ClaudeEvent[] | undefined {
  const message = parseJsonObject(line)
  return message === undefined ? undefined : read(message)
}

/** The result in the output of one-shot json: the object itself, or the last of an array (with `--verbose`). */
export function parseResult(stdout: string): ClaudeResult | undefined {
  const value = parseJson(stdout)
  const candidates: readonly unknown[] = Array.isArray(value) ? value.toReversed() : [value]
  const result = candidates.find((entry) => isJsonObject(entry) && entry['type'] === 'result')
  return isJsonObject(result) ? toResult(result) : undefined
}

const ALIVE: readonly ClaudeEvent[] = [{ type: 'alive' }]

function read(message: JsonObject): readonly ClaudeEvent[] {
  switch (message['type']) {
    case 'system':
      return readSystem(message)
    case 'stream_event':
      return readStreamEvent(message)
    case 'assistant':
    case 'user':
      return readContent(message)
    case 'result':
      return [{ type: 'result', result: toResult(message) }]
    case 'rate_limit_event':
      return readLimit(message)
    case 'control_request':
      return readControl(message)
    case 'control_cancel_request':
      return [{ type: 'ask_withdrawn', requestId: stringOf(message['request_id']) }]
    default:
      return ALIVE
  }
}

function readSystem(message: JsonObject): readonly ClaudeEvent[] {
  if (message['subtype'] === 'init') return [{ type: 'init', sessionId: stringOf(message['session_id']) }]
  if (message['subtype'] !== 'api_retry') return ALIVE
  const { attempt, max_retries: most, retry_delay_ms: delayMs, error_status: status } = message
  const seconds = Math.ceil(Number(delayMs ?? 0) / 1000)
  const text = `the model provider answered ${status ?? 'nothing'}: retry ${attempt ?? ''} of ${most ?? ''} in ${seconds} s`
  return [{ type: 'retrying', text }]
}

/** Only the text of the agent itself; the text of a subagent goes to the agent that started it. */
function readStreamEvent(message: JsonObject): readonly ClaudeEvent[] {
  const { event } = message
  if (!isJsonObject(event) || isOfSubagent(message)) return ALIVE
  const { delta, content_block: block } = event
  if (isJsonObject(delta) && delta['type'] === 'text_delta') return [{ type: 'text', delta: stringOf(delta['text']) }]
  if (isJsonObject(block) && block['type'] === 'text') return [{ type: 'paragraph' }]
  return ALIVE
}

function readContent({ message, tool_use_result: reported }: JsonObject): readonly ClaudeEvent[] {
  const content = isJsonObject(message) && Array.isArray(message['content']) ? message['content'] : []
  const events = content.filter(isJsonObject).flatMap((block): readonly ClaudeEvent[] => {
    if (block['type'] === 'tool_use') {
      const subject = isJsonObject(block['input']) ? subjectOfInput(block['input']) : ''
      return [{ type: 'tool_started', id: stringOf(block['id']), name: stringOf(block['name']), subject }]
    }
    if (block['type'] !== 'tool_result') return []
    const failed = block['is_error'] === true
    // claude sends each result in a message of its own, with what the tool did beside it.
    const diffs = failed || content.length !== 1 ? undefined : diffsOf(reported)
    return [{ type: 'tool_ended', id: stringOf(block['tool_use_id']), failed, diffs }]
  })
  return events.length === 0 ? ALIVE : events
}

/** The result of a tool that changes a file has the lines around each change. A new file has only its content. */
function diffsOf(reported: unknown): readonly FileDiff[] | undefined {
  if (!isJsonObject(reported)) return undefined
  const { filePath: path, structuredPatch: hunks, type, content } = reported
  if (typeof path !== 'string' || !Array.isArray(hunks)) return undefined
  if (type === 'create' && typeof content === 'string') return [diffOfFile(path, 'created', content)]
  const lines = hunks.filter(isJsonObject).flatMap(({ oldStart, oldLines, newStart, newLines, lines: changed }) => {
    const header = `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`
    return [header, ...(Array.isArray(changed) ? changed.map(String) : [])]
  })
  return lines.length === 0 ? undefined : [diffOfHunks({ path }, lines)]
}

function readLimit({ rate_limit_info: info }: JsonObject): readonly ClaudeEvent[] {
  if (!isJsonObject(info) || info['status'] !== 'rejected') return ALIVE
  const resetsAtSeconds = info['resetsAt']
  return typeof resetsAtSeconds === 'number' ? [{ type: 'limit', resetsAtMs: resetsAtSeconds * 1000 }] : ALIVE
}

function readControl({ request_id: requestId, request }: JsonObject): readonly ClaudeEvent[] {
  if (!isJsonObject(request) || request['subtype'] !== 'can_use_tool') return ALIVE
  const { tool_name: tool, tool_use_id: toolUseId, input } = request
  return [
    {
      type: 'ask',
      requestId: stringOf(requestId),
      toolUseId: stringOf(toolUseId) || stringOf(requestId),
      tool: stringOf(tool),
      input: isJsonObject(input) ? input : {},
    },
  ]
}

function toResult(message: JsonObject): ClaudeResult {
  const { usage, result, errors, api_error_status: status, permission_denials: denials } = message
  const { total_cost_usd: total } = message
  const complaints = Array.isArray(errors) ? errors.filter((error) => typeof error === 'string') : []
  const denied = Array.isArray(denials)
    ? denials.filter(isJsonObject).map((denial) => stringOf(denial['tool_name']))
    : []
  return {
    sessionId: stringOf(message['session_id']),
    isError: message['is_error'] === true,
    subtype: stringOf(message['subtype']),
    text: typeof result === 'string' ? result : complaints.join('\n'),
    isRefusal: message['stop_reason'] === 'refusal',
    status: typeof status === 'number' ? status : undefined,
    deniedTools: [...new Set(denied)],
    ...tokensOf(usage),
    costUsd: costOf(message),
    sessionCostUsd: typeof total === 'number' ? total : undefined,
    queued: Number(message['queued_turn_count'] ?? 0),
  }
}

function tokensOf(usage: unknown): Pick<ClaudeResult, 'inputTokens' | 'outputTokens'> {
  if (!isJsonObject(usage)) return { inputTokens: undefined, outputTokens: undefined }
  // The model also reads the tokens from and into the cache.
  const parts = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'].map((key) => usage[key])
  const counted = parts.filter((part) => typeof part === 'number')
  const { output_tokens: output } = usage
  return {
    inputTokens: counted.length === 0 ? undefined : counted.reduce((sum, part) => sum + part, 0),
    outputTokens: typeof output === 'number' ? output : undefined,
  }
}

/** The models of this turn only. `total_cost_usd` adds up over a session, also over a resumed one. */
function costOf({ model_usage_since_last_result: recent }: JsonObject): number | undefined {
  if (!isJsonObject(recent)) return undefined
  const costs = Object.values(recent)
    .filter(isJsonObject)
    .map((model) => model['costUSD'])
  return costs.every((cost) => typeof cost === 'number') ? costs.reduce((sum, cost) => sum + cost, 0) : undefined
}

const isOfSubagent = ({ parent_tool_use_id: parent }: JsonObject): boolean =>
  typeof parent === 'string' && parent !== ''

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
