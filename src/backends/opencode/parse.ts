/**
 * Parses what `opencode run --format json` prints: steps, ended tools, whole texts. After a denied tool the run ends with
 * exit code 0 and no text, so the reply names the tool. An unknown session is reported on stderr in colours, every other
 * error as an `error` event with the provider's status.
 */
import type { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { processFailure, providerError } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

const DENIED = /rejected permission|rule which prevents|permission (denied|rejected)/i

export function createOpencodeParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const used: UsageTotals = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  let hasSession = false
  let failed: EndEvent | undefined
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
        failed ??= { type: 'failed', error: modelError(event['error'], options) }
        return ACTIVITY
      default:
        return ACTIVITY
    }
  }
  return {
    read(line) {
      const event = parseJsonObject(line)
      if (event === undefined) return ACTIVITY
      const { sessionID } = event
      if (hasSession || !isSessionId(sessionID)) return read(event)
      hasSession = true
      return [{ type: 'session', token: options.token(sessionID) }, ...read(event)]
    },
    conclude(result) {
      if (failed !== undefined) return failed
      const error = processFailure(withoutColour(result), options.facts)
      return error === undefined ? reply.finish(options.backend).end : { type: 'failed', error }
    },
  }
}

type UsageTotals = { inputTokens: number; outputTokens: number; costUsd: number }

/** opencode reports a tool once, after it has ended. */
function readTool(part: JsonObject, reply: ReplyBuilder): readonly BackendEvent[] {
  const name = stringOf(part['tool']) || 'tool'
  const state = isJsonObject(part['state']) ? part['state'] : {}
  const isCompleted = state['status'] === 'completed'
  reply.startParagraph()
  const events: BackendEvent[] = [
    { type: 'tool', name, state: 'started' },
    { type: 'tool', name, state: isCompleted ? 'finished' : 'failed' },
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

function modelError(error: unknown, { facts: { nowMs }, backend }: AgentOutputParserOptions): MoleculeError {
  const data = isJsonObject(error) && isJsonObject(error['data']) ? error['data'] : {}
  const { message, statusCode, responseHeaders, isRetryable } = data
  const wait = isJsonObject(responseHeaders) ? responseHeaders['retry-after'] : undefined
  const retryAfter = typeof wait === 'string' ? ` (retry after ${wait} seconds)` : ''
  const text = `${stringOf(message)}${retryAfter}`.trim()
  const status = typeof statusCode === 'number' ? statusCode : undefined
  return providerError(backend, { text, status, nowMs }, isRetryable !== false)
}

/** opencode colours its stderr, also without a terminal. */
function withoutColour(result: ProcessResult): ProcessResult {
  const text = new TextDecoder().decode(result.stderrTail).replaceAll(COLOUR_CODE, '')
  return { ...result, stderrTail: new TextEncoder().encode(text) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one.
const COLOUR_CODE = /\u001b\[[0-9;]*m/g
