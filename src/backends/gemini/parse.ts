/** Parses what gemini prints with `--output-format stream-json`. The exit code decides about a failure: outcome.ts. */
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import { FAILED_CALLS_MAX } from '../engine/acp/acp-agent.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { providerError } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { subjectOfInput } from '../engine/tool-use.ts'
import { failedCallIn, failedEnd, SENTENCES } from './outcome.ts'

export function createGeminiParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const tools = new Map<unknown, { readonly name: string; readonly subject?: string }>()
  let errorMessage: string | undefined
  let failedCalls = 0
  const read = (event: JsonObject): readonly BackendEvent[] => {
    switch (event['type']) {
      case 'init': {
        const { session_id: id } = event
        return isSessionId(id) ? [{ type: 'session', token: options.token(id) }] : ACTIVITY
      }
      case 'message':
        return event['role'] === 'assistant' ? reply.append(stringOf(event['content'])) : ACTIVITY
      case 'tool_use':
        reply.startParagraph()
        tools.set(event['tool_id'], toolUseOf(event))
        return [{ type: 'tool', ...toolUseOf(event), state: 'started' }]
      case 'tool_result': {
        const use = tools.get(event['tool_id']) ?? { name: 'tool' }
        if (isDenied(event)) reply.addDenied(use.name)
        return [{ type: 'tool', ...use, state: event['status'] === 'success' ? 'finished' : 'failed' }]
      }
      case 'error':
        // The `result` after a blocked answer has no message of its own.
        if (event['severity'] === 'error') errorMessage = stringOf(event['message'])
        return ACTIVITY
      case 'result': {
        const usage = usageOf(event['stats'])
        if (event['status'] !== 'success') {
          const ownMessage = isJsonObject(event['error']) ? stringOf(event['error']['message']) : ''
          errorMessage = ownMessage === '' ? (errorMessage ?? '') : ownMessage
          return usage
        }
        const { last, end } = reply.finish(options.backend)
        return [...usage, ...last, end]
      }
      default:
        return ACTIVITY
    }
  }
  return {
    read: (line) => {
      failedCalls = 0
      const event = parseJsonObject(line)
      return event === undefined ? ACTIVITY : read(event)
    },
    // The runtime retries, and says when. Gemini would do it itself, in silence and for minutes.
    readError: (line) => {
      const call = failedCallIn(line)
      if (call === undefined) return []
      failedCalls += 1
      if (failedCalls < FAILED_CALLS_MAX) {
        return [{ type: 'status', text: 'a call of the model failed: gemini tries it again' }]
      }
      const error = { text: call.text, status: call.status, nowMs: options.facts.nowMs, sentences: SENTENCES }
      return [{ type: 'failed', error: providerError(options.backend, error) }]
    },
    conclude: (result, stdout) => failedEnd(result, { errorMessage, stdout }, options),
  }
}

function toolUseOf({ tool_name: name, parameters }: JsonObject) {
  return { name: stringOf(name), ...(isJsonObject(parameters) && { subject: subjectOfInput(parameters) }) }
}

function usageOf(stats: unknown): readonly BackendEvent[] {
  if (!isJsonObject(stats)) return []
  return usageEvents({ inputTokens: stats['input_tokens'], outputTokens: stats['output_tokens'] })
}

function isDenied({ error, output }: JsonObject): boolean {
  const type = isJsonObject(error) ? String(error['type']) : ''
  return (
    /denied|policy|execution_not_allowed/i.test(type) ||
    /denied by policy|requires? user confirmation/i.test(stringOf(output))
  )
}
