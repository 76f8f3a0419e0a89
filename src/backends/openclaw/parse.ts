/**
 * What `openclaw agent --local --json` prints: one JSON object at the end, over many lines, and nothing while it works.
 * Failures are `{"ok": false, "error": {"message"}}` with exit code 1 and the provider's status in the words.
 */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { classifyAgentError, processFailure } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'

/** The line that closes the object; what is printed before it is indented. */
const LAST_LINE = '}'
/** Tries at reading all that came so far; a program that prints nothing but such lines is not read again and again. */
const TRIES_MAX = 8

export function createOpenclawParser(reading: AgentOutputParserOptions): AgentOutputParser {
  const lines: string[] = []
  let tries = 0
  return {
    read(line) {
      lines.push(line)
      if (line !== LAST_LINE || tries >= TRIES_MAX) return ACTIVITY
      tries += 1
      const reply = parseReply(lines.join('\n'))
      return reply === undefined ? ACTIVITY : eventsOf(reply, reading)
    },
    conclude(result) {
      const failure = processFailure(result, reading.facts)
      const error = failure ?? new MoleculeError('agent_failed', 'openclaw ended without a result', { retryable: true })
      return { type: 'failed', error }
    },
  }
}

function eventsOf(reply: JsonObject, reading: AgentOutputParserOptions): readonly BackendEvent[] {
  if (reply['ok'] === false) {
    const error = isJsonObject(reply['error']) ? reply['error'] : {}
    return [{ type: 'failed', error: modelError(stringOf(error['message']), reading) }]
  }
  const meta = isJsonObject(reply['meta']) ? reply['meta'] : {}
  const agentMeta = isJsonObject(meta['agentMeta']) ? meta['agentMeta'] : {}
  const { sessionId } = agentMeta
  const session: readonly BackendEvent[] = isSessionId(sessionId)
    ? [{ type: 'session', token: reading.token(sessionId) }]
    : []
  const answer = createReplyBuilder()
  const said = payloadTexts(reply['payloads']).flatMap((text) => {
    answer.startParagraph()
    return answer.append(text)
  })
  const { last, end } = answer.finish(reading.backend)
  return [...session, ...toolsOf(agentMeta), ...usageOf(agentMeta), ...said, ...last, end]
}

function payloadTexts(payloads: unknown): readonly string[] {
  return Array.isArray(payloads) ? payloads.filter(isJsonObject).map(({ text }) => stringOf(text)) : []
}

/** Only their names are told, and only when all is over. */
function toolsOf({ terminalReceipt }: JsonObject): readonly BackendEvent[] {
  const names = isJsonObject(terminalReceipt) ? terminalReceipt['successfulToolNames'] : undefined
  if (!Array.isArray(names)) return []
  return names
    .filter((name) => typeof name === 'string')
    .flatMap((name) => [
      { type: 'tool', name, state: 'started' },
      { type: 'tool', name, state: 'finished' },
    ])
}

function usageOf({ usage, costUsd }: JsonObject): readonly BackendEvent[] {
  if (!isJsonObject(usage)) return []
  const { input: inputTokens, output: outputTokens } = usage
  if (typeof inputTokens !== 'number' || typeof outputTokens !== 'number') return []
  return [{ type: 'usage', inputTokens, outputTokens, ...(typeof costUsd === 'number' && { costUsd }) }]
}

function modelError(words: string, { backend, facts: { nowMs } }: AgentOutputParserOptions): MoleculeError {
  // `Retry after about 1 minute`
  const text = words === '' ? `${backend} failed and said nothing` : words.replace('after about', 'after')
  const told = /\bHTTP (\d{3})\b/.exec(text)?.[1]
  const status = told === undefined ? undefined : Number(told)
  // After a refusal it holds a key back for a while by itself and says for how long.
  const isHeldBack = /temporarily disabled/i.test(text)
  const known = classifyAgentError({ text, status: isHeldBack ? 429 : status, nowMs })
  return known ?? new MoleculeError('provider_failed', text, { retryable: true })
}

function parseReply(text: string): JsonObject | undefined {
  const at = text.indexOf('{')
  return at < 0 ? undefined : parseJsonObject(text.slice(at))
}
