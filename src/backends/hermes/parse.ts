/**
 * Parses what `hermes chat --format stream-json` prints: `system/init` with the session, text deltas, tools, one
 * `result`. Some errors of the provider come as the answer with exit code 0: then the result has an `error`, or its text
 * begins with the status. An unknown session is a plain sentence on stdout or stderr.
 */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { endWithoutResult, providerError } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'

const PROVIDER_ERROR = /^\s*HTTP (\d{3})\b/
const SESSION_LOST = /^(?:Error: )?Session not found: /m
const DENIED = /^(?:BLOCKED|Command (?:denied|blocked))|approval (?:denied|required)/i

export function createHermesParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  const read = (event: JsonObject): readonly BackendEvent[] => {
    switch (event['type']) {
      case 'system':
        return sessionOf(event, options)
      case 'text':
        return reply.append(stringOf(event['text']))
      case 'tool_use':
        reply.startParagraph()
        return [{ type: 'tool', name: stringOf(event['name']) || 'tool', state: 'started' }]
      case 'tool_result': {
        const name = stringOf(event['name']) || 'tool'
        if (DENIED.test(stringOf(event['output']))) reply.addDenied(name)
        return [{ type: 'tool', name, state: event['is_error'] === true ? 'failed' : 'finished' }]
      }
      case 'result':
        return [...sessionOf(event, options), ...usageOf(event['tokens']), ...endOf(event, options, reply)]
      default:
        return ACTIVITY
    }
  }
  return {
    read: (line) => {
      const event = parseJsonObject(line)
      return event === undefined ? ACTIVITY : read(event)
    },
    conclude(result, stdout) {
      const output = `${stdout}\n${new TextDecoder().decode(result.stderrTail)}`
      if (result.end !== 'exited' || !SESSION_LOST.test(output)) {
        return endWithoutResult(options.backend, result, options.facts)
      }
      const message = `hermes does not know session ${options.sessionId ?? ''}`
      return { type: 'failed', error: new MoleculeError('session_lost', message) }
    },
  }
}

/** The last session counts: when hermes compresses a long session, it continues in a new one within the turn. */
function sessionOf({ session_id: id }: JsonObject, { token }: AgentOutputParserOptions): readonly BackendEvent[] {
  return isSessionId(id) ? [{ type: 'session', token: token(id) }] : ACTIVITY
}

function endOf(event: JsonObject, options: AgentOutputParserOptions, reply: ReplyBuilder): readonly BackendEvent[] {
  const text = stringOf(event['text'])
  const message = stringOf(event['error'])
  const status = PROVIDER_ERROR.exec(message || text)?.[1]
  if (event['exit_code'] !== 0 || message !== '' || status !== undefined) {
    const { backend, facts } = options
    const complaint = {
      text: message || text,
      status: status === undefined ? undefined : Number(status),
      nowMs: facts.nowMs,
    }
    return [{ type: 'failed', error: providerError(backend, complaint) }]
  }
  // Without streamed text the result holds the whole answer.
  const whole = reply.text() === '' ? reply.append(text) : []
  const { last, end } = reply.finish(options.backend)
  return [...whole, ...last, end]
}

function usageOf(tokens: unknown): readonly BackendEvent[] {
  return isJsonObject(tokens) ? usageEvents({ inputTokens: tokens['input'], outputTokens: tokens['output'] }) : []
}
