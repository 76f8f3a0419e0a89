/**
 * Parses what `opencode run --format json` prints: steps, ended tools, whole texts. After a denied tool the run ends with
 * exit code 0 and no text, so the reply names the tool. An unknown session is reported on stderr in colours, every other
 * error as an `error` event with the provider's status.
 */
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import { FAILED_CALLS_MAX, type FailedCall } from '../engine/acp/acp-agent.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import {
  type AgentErrorCode,
  agentErrorOf,
  type ErrorSentence,
  endWithoutResult,
  processFailure,
  providerError,
  refusedEnd,
} from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { subjectOfInput } from '../engine/tool-use.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

const DENIED = /rejected permission|rule which prevents|permission (denied|rejected)/i

export function createOpencodeParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const used: UsageTotals = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  let hasSession = false
  let hasEvent = false
  let failed: EndEvent | undefined
  /** By session: the turn's own, and those of subagents. */
  const failedCalls = new Map<string, number>()
  const read = (event: JsonObject): readonly BackendEvent[] => {
    const part = isJsonObject(event['part']) ? event['part'] : {}
    switch (event['type']) {
      case 'text':
        return reply.append(stringOf(part['text']))
      case 'tool_use':
        return readTool(part, reply)
      case 'step_finish':
        return addUsage(part, used)
      case 'error':
        failed ??= failedEnd(event['error'], options)
        return ACTIVITY
      default:
        return ACTIVITY
    }
  }
  return {
    read(line) {
      failedCalls.clear()
      const event = parseJsonObject(line)
      if (event === undefined) return ACTIVITY
      hasEvent = true
      const { sessionID } = event
      if (hasSession || !isSessionId(sessionID)) return read(event)
      hasSession = true
      return [{ type: 'session', token: options.token(sessionID) }, ...read(event)]
    },
    readError(line) {
      const { nowMs } = options.facts
      const model = MODEL_MISSING.exec(line)?.[0]
      if (model !== undefined) return [{ type: 'failed', error: agentErrorOf('unknown_model', { text: model, nowMs }) }]
      const call = failedCallIn(line)
      if (call === undefined) return []
      const count = (failedCalls.get(call.sessionId) ?? 0) + 1
      failedCalls.set(call.sessionId, count)
      if (count < FAILED_CALLS_MAX) return ACTIVITY
      const error = { text: call.text, nowMs, sentences: SENTENCES }
      return [{ type: 'failed', error: providerError(options.backend, error) }]
    },
    conclude(result, stdout) {
      if (failed !== undefined) return failed
      const error = processFailure(withoutColour(result), options.facts)
      if (error !== undefined) return { type: 'failed', error }
      return hasEvent ? reply.finish(options.backend).end : endWithoutResult(options, result, stdout)
    },
  }
}

/** Only the log says so; the error event is an "Unexpected server error". */
const MODEL_MISSING = /ProviderModelNotFoundError: Model not found: [^"\\]{1,200}/

/** Makes opencode log its errors on stderr; it has no setting for the number of its retries. */
export const LOG_ENVIRONMENT = { OPENCODE_PRINT_LOGS: '1', OPENCODE_LOG_LEVEL: 'ERROR' }

const LOGGED_ERROR = 'error.error="'

/** A failed call of the model in opencode's log. The call for a title (`small`) does not count. */
export function failedCallIn(line: string): FailedCall | undefined {
  const start = line.indexOf('message="stream error"')
  const text = start === -1 ? '' : line.slice(start)
  const [, sessionId] = / session\.id=(\S+) small=false /.exec(text) ?? []
  const error = text.lastIndexOf(LOGGED_ERROR)
  if (sessionId === undefined || error === -1) return undefined
  const quoted = text.slice(error + LOGGED_ERROR.length - 1, text.lastIndexOf('"') + 1)
  return { sessionId, text: unquoted(quoted).replace(/^AI_\w+: /, '') }
}

function unquoted(text: string): string {
  try {
    return stringOf(JSON.parse(text))
  } catch {
    return text
  }
}

type UsageTotals = { inputTokens: number; outputTokens: number; costUsd: number }

/** opencode reports a tool once, after it has ended. */
function readTool(part: JsonObject, reply: ReplyBuilder): readonly BackendEvent[] {
  const name = stringOf(part['tool']) || 'tool'
  const state = isJsonObject(part['state']) ? part['state'] : {}
  const isCompleted = state['status'] === 'completed'
  const subject = isJsonObject(state['input']) && { subject: subjectOfInput(state['input']) }
  reply.startParagraph()
  const events: BackendEvent[] = [
    { type: 'tool', name, ...subject, state: 'started' },
    { type: 'tool', name, ...subject, state: isCompleted ? 'finished' : 'failed' },
  ]
  if (isCompleted || !DENIED.test(stringOf(state['error']))) return events
  // At once, because the run prints nothing after this.
  return [...events, ...reply.append(`(Not allowed in this turn: ${name}.)`)]
}

/** A step reports its own tokens; the usage of the turn is the sum so far. */
function addUsage({ tokens, cost }: JsonObject, used: UsageTotals): readonly BackendEvent[] {
  if (!isJsonObject(tokens)) return ACTIVITY
  const { input, output } = tokens
  if (typeof input !== 'number' || typeof output !== 'number') return ACTIVITY
  used.inputTokens += input
  used.outputTokens += output
  if (typeof cost === 'number') used.costUsd += cost
  return [{ type: 'usage', ...used }]
}

/** opencode's error event: the name of its kind, and for an answer of the provider its status. */
function failedEnd(error: unknown, { facts: { nowMs }, backend }: AgentOutputParserOptions): EndEvent {
  const name = isJsonObject(error) ? stringOf(error['name']) : ''
  const data = isJsonObject(error) && isJsonObject(error['data']) ? error['data'] : {}
  const { message, statusCode, responseHeaders, isRetryable } = data
  if (name === 'ContentFilterError') return refusedEnd()
  const wait = isJsonObject(responseHeaders) ? responseHeaders['retry-after'] : undefined
  const retryAfter = typeof wait === 'string' ? ` (retry after ${wait} seconds)` : ''
  const text = `${stringOf(message)}${retryAfter}`.trim()
  const code = CODE_OF_NAME[name]
  if (code !== undefined) return { type: 'failed', error: agentErrorOf(code, { text, nowMs }) }
  const status = typeof statusCode === 'number' ? statusCode : undefined
  const failed = { text, status, nowMs, sentences: SENTENCES }
  return { type: 'failed', error: providerError(backend, failed, isRetryable !== false) }
}

/** In both modes opencode names the kind of an error. */
export const CODE_OF_NAME: Readonly<Record<string, AgentErrorCode>> = {
  ContextOverflowError: 'context_full',
  ProviderAuthError: 'auth_failed',
}

export const SENTENCES: readonly ErrorSentence[] = [
  // The code `insufficient_quota` is not in the text. Google has the same sentence for the limit of a minute, with a time.
  { code: 'quota_exhausted', says: /exceeded your current quota(?!.*retry in)/is },
]

/** opencode colours its stderr, also without a terminal. */
function withoutColour(result: ProcessResult): ProcessResult {
  const text = new TextDecoder().decode(result.stderrTail).replaceAll(COLOUR_CODE, '')
  return { ...result, stderrTail: new TextEncoder().encode(text) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one.
const COLOUR_CODE = /\u001b\[[0-9;]*m/g
