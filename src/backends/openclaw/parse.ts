/**
 * Parses what `openclaw agent --local --json` prints: one JSON object over many lines at the end, and nothing before. A
 * failure is `{"ok": false, "error": {"message"}}` with exit code 1 and the provider's status in the message.
 */
import type { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { endWithoutResult, providerError } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'

/** The line that closes the object; all lines within it are indented. */
const LAST_LINE = '}'
/** Attempts at parsing the output so far. After them it is not parsed again: each attempt reads all of it. */
const PARSE_ATTEMPTS_MAX = 8

export function createOpenclawParser(options: AgentOutputParserOptions): AgentOutputParser {
  const lines: string[] = []
  let attempts = 0
  return {
    read(line) {
      lines.push(line)
      if (line !== LAST_LINE || attempts >= PARSE_ATTEMPTS_MAX) return ACTIVITY
      attempts += 1
      const output = lines.join('\n')
      const answer = parseJsonObject(output.slice(output.indexOf('{')))
      return answer === undefined ? ACTIVITY : eventsOf(answer, options)
    },
    conclude: (result) => endWithoutResult(options.backend, result, options.facts),
  }
}

function eventsOf(answer: JsonObject, options: AgentOutputParserOptions): readonly BackendEvent[] {
  if (answer['ok'] === false) {
    const error = isJsonObject(answer['error']) ? answer['error'] : {}
    return [{ type: 'failed', error: modelError(stringOf(error['message']), options) }]
  }
  const meta = isJsonObject(answer['meta']) ? answer['meta'] : {}
  const agentMeta = isJsonObject(meta['agentMeta']) ? meta['agentMeta'] : {}
  const { sessionId } = agentMeta
  const session: readonly BackendEvent[] = isSessionId(sessionId)
    ? [{ type: 'session', token: options.token(sessionId) }]
    : []
  const reply = createReplyBuilder()
  const texts = payloadTexts(answer['payloads']).flatMap((text) => {
    reply.startParagraph()
    return reply.append(text)
  })
  const { last, end } = reply.finish(options.backend)
  return [...session, ...toolsOf(agentMeta), ...usageOf(agentMeta), ...texts, ...last, end]
}

function payloadTexts(payloads: unknown): readonly string[] {
  return Array.isArray(payloads) ? payloads.filter(isJsonObject).map(({ text }) => stringOf(text)) : []
}

/** openclaw reports only the names of its tools, at the end. */
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
  return isJsonObject(usage) ? usageEvents({ inputTokens: usage['input'], outputTokens: usage['output'], costUsd }) : []
}

function modelError(message: string, { backend, facts: { nowMs } }: AgentOutputParserOptions): MoleculeError {
  // `Retry after about 1 minute`: without "about" the engine reads the delay.
  const text = message.replace('after about', 'after')
  const found = /\bHTTP (\d{3})\b/.exec(text)?.[1]
  // After a refusal openclaw itself holds a key back for a while and says for how long.
  const isHeldBack = /temporarily disabled/i.test(text)
  const status = found === undefined ? undefined : Number(found)
  return providerError(backend, { text, status: isHeldBack ? 429 : status, nowMs })
}
