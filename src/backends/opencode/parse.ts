/**
 * What `opencode run --format json` prints: steps, tools when they have ended, text whole. A tool that was not allowed
 * ends the run in silence with exit code 0; then the reply says what was denied. An unknown session is told on stderr
 * in colours, everything else as an `error` event with the provider's status.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { classifyAgentError, processFailure } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import type { EndEvent } from '../engine/turn-engine.ts'

const DENIED = /rejected permission|rule which prevents|permission (denied|rejected)/i

export function createOpencodeParser(reading: AgentOutputParserOptions): AgentOutputParser {
  const answer = createReplyBuilder()
  const used = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  let named = false
  let failed: EndEvent | undefined
  const read = (event: JsonObject): readonly BackendEvent[] => {
    const part = isJsonObject(event['part']) ? event['part'] : {}
    switch (event['type']) {
      case 'text':
        return answer.append(stringOf(part['text']))
      case 'tool_use':
        return readTool(part, answer)
      case 'step_finish':
        return addUsage(part, used)
      case 'error':
        failed ??= { type: 'failed', error: modelError(event['error'], reading) }
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
      if (named || !isSessionId(sessionID)) return read(event)
      named = true
      return [{ type: 'session', token: reading.token(sessionID) }, ...read(event)]
    },
    conclude(result) {
      if (failed !== undefined) return failed
      const error = processFailure(withoutColour(result), reading.facts)
      return error === undefined ? answer.finish(reading.backend).end : { type: 'failed', error }
    },
  }
}

type UsageTotals = { inputTokens: number; outputTokens: number; costUsd: number }

/** A tool is told of once it has ended, with its outcome. */
function readTool(part: JsonObject, answer: ReplyBuilder): readonly BackendEvent[] {
  const name = stringOf(part['tool']) || 'tool'
  const state = isJsonObject(part['state']) ? part['state'] : {}
  const isFine = state['status'] === 'completed'
  answer.startParagraph()
  const events: BackendEvent[] = [
    { type: 'tool', name, state: 'started' },
    { type: 'tool', name, state: isFine ? 'finished' : 'failed' },
  ]
  if (isFine || !DENIED.test(stringOf(state['error']))) return events
  // At once: after this the run says no more.
  return [...events, ...answer.append(`(Not allowed in this turn: ${name}.)`)]
}

/** Each step tells its own; the turn's is all of them so far. */
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
  const words = stringOf(message) || `${backend} failed and said nothing`
  const text = typeof wait === 'string' ? `${words} (retry after ${wait} seconds)` : words
  const status = typeof statusCode === 'number' ? statusCode : undefined
  return (
    classifyAgentError({ text, status, nowMs }) ??
    new MoleculeError('provider_failed', text, { retryable: isRetryable !== false })
  )
}

/** Its stderr is coloured for a terminal. */
function withoutColour(result: ProcessResult): ProcessResult {
  const text = new TextDecoder().decode(result.stderrTail).replaceAll(COLOUR_CODE, '')
  return { ...result, stderrTail: new TextEncoder().encode(text) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one.
const COLOUR_CODE = /\u001b\[[0-9;]*m/g
