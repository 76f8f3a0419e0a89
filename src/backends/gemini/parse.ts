/** Parses what gemini prints with `--output-format stream-json`. The exit code decides about a failure: outcome.ts. */
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { ACTIVITY, createReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { failureOf } from './outcome.ts'

export function createGeminiParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const tools = new Map<unknown, string>()
  let errorMessage: string | undefined
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
        tools.set(event['tool_id'], stringOf(event['tool_name']))
        return [{ type: 'tool', name: stringOf(event['tool_name']), state: 'started' }]
      case 'tool_result': {
        const name = tools.get(event['tool_id']) ?? 'tool'
        if (isDenied(event)) reply.addDenied(name)
        return [{ type: 'tool', name, state: event['status'] === 'success' ? 'finished' : 'failed' }]
      }
      case 'result': {
        const usage = usageOf(event['stats'])
        if (event['status'] !== 'success') {
          errorMessage = isJsonObject(event['error']) ? stringOf(event['error']['message']) : ''
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
      const event = parseJsonObject(line)
      return event === undefined ? ACTIVITY : read(event)
    },
    conclude: (result) => ({ type: 'failed', error: failureOf(result, errorMessage, options) }),
  }
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
