/** Parses what gemini prints with `--output-format stream-json`. The exit code decides about a failure: outcome.ts. */
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { ACTIVITY, createReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { subjectOfInput } from '../engine/tool-use.ts'
import { failedEnd } from './outcome.ts'

export function createGeminiParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const tools = new Map<unknown, { readonly name: string; readonly subject?: string }>()
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
      const event = parseJsonObject(line)
      return event === undefined ? ACTIVITY : read(event)
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
