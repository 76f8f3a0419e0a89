/**
 * What `hermes chat --format stream-json` prints: `system/init` with the session, text in deltas, tools, one `result`.
 * Some provider failures come as the answer with exit code 0; then the result says so, or the text begins with the
 * status. An unknown session is told in plain words, on either stream.
 */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { classifyAgentError, processFailure } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'

const PROVIDER_ERROR = /^\s*HTTP (\d{3})\b/
const SESSION_LOST = /^(?:Error: )?Session not found: /m
const DENIED = /^(?:BLOCKED|Command (?:denied|blocked))|approval (?:denied|required)/i

export function createHermesParser(reading: AgentOutputParserOptions): AgentOutputParser {
  const answer = createReplyBuilder()
  const read = (event: JsonObject): readonly BackendEvent[] => {
    switch (event['type']) {
      case 'system':
        return sessionOf(event, reading)
      case 'text':
        return answer.append(stringOf(event['text']))
      case 'tool_use':
        answer.startParagraph()
        return [{ type: 'tool', name: stringOf(event['name']) || 'tool', state: 'started' }]
      case 'tool_result': {
        const name = stringOf(event['name']) || 'tool'
        if (DENIED.test(stringOf(event['output']))) answer.addDenied(name)
        return [{ type: 'tool', name, state: event['is_error'] === true ? 'failed' : 'finished' }]
      }
      case 'result':
        return [...sessionOf(event, reading), ...usageOf(event['tokens']), ...endOf(event, reading, answer)]
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
      const said = `${stdout}\n${new TextDecoder().decode(result.stderrTail)}`
      if (result.end === 'exited' && SESSION_LOST.test(said)) {
        const message = `hermes does not know session ${reading.sessionId ?? ''}`
        return { type: 'failed', error: new MoleculeError('session_lost', message) }
      }
      const failure = processFailure(result, reading.facts)
      const error = failure ?? new MoleculeError('agent_failed', 'hermes ended without a result', { retryable: true })
      return { type: 'failed', error }
    },
  }
}

/** It may change within a turn, when a long session is compressed into a new one: the last one named is the one. */
function sessionOf({ session_id: id }: JsonObject, { token }: AgentOutputParserOptions): readonly BackendEvent[] {
  return isSessionId(id) ? [{ type: 'session', token: token(id) }] : ACTIVITY
}

function endOf(event: JsonObject, reading: AgentOutputParserOptions, answer: ReplyBuilder): readonly BackendEvent[] {
  const text = stringOf(event['text'])
  const complaint = stringOf(event['error'])
  const status = PROVIDER_ERROR.exec(complaint || text)?.[1]
  if (event['exit_code'] !== 0 || complaint !== '' || status !== undefined) {
    return [{ type: 'failed', error: modelError(complaint || text, status, reading) }]
  }
  // Where it did not stream, the result is all there is.
  const late = answer.text() === '' ? answer.append(text) : []
  const { last, end } = answer.finish(reading.backend)
  return [...late, ...last, end]
}

function modelError(
  words: string,
  status: string | undefined,
  { backend, facts }: AgentOutputParserOptions,
): MoleculeError {
  const text = words === '' ? `${backend} failed and said nothing` : words
  const complaint = { text, nowMs: facts.nowMs, status: status === undefined ? undefined : Number(status) }
  return classifyAgentError(complaint) ?? new MoleculeError('provider_failed', text, { retryable: true })
}

function usageOf(tokens: unknown): readonly BackendEvent[] {
  if (!isJsonObject(tokens)) return []
  const { input: inputTokens, output: outputTokens } = tokens
  if (typeof inputTokens !== 'number' || typeof outputTokens !== 'number') return []
  return [{ type: 'usage', inputTokens, outputTokens }]
}
