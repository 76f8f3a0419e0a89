/**
 * Parses what `openclaw agent --json` prints: one JSON object over many lines at the end, and nothing before. A turn
 * through the gateway has the same object in `result`. A refusal is `{"ok": false, "error": {"message"}}`; a failed turn
 * has an `error` in its meta data and payloads that are marked `isError`.
 */
import type { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { endWithoutResult } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, createReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { sessionIdIn } from './args.ts'
import { openclawError } from './outcome.ts'

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
    conclude: (result, stdout) => endWithoutResult(options, result, stdout),
  }
}

function eventsOf(answer: JsonObject, options: AgentOutputParserOptions): readonly BackendEvent[] {
  const { nowMs } = options.facts
  if (answer['ok'] === false) {
    return [{ type: 'failed', error: openclawError(stringOf(memberOf(answer, 'error')['message']), nowMs) }]
  }
  const turn = isJsonObject(answer['result']) ? answer['result'] : answer
  const meta = memberOf(turn, 'meta')
  const agentMeta = memberOf(meta, 'agentMeta')
  // `sessionId` is openclaw's own name for the session and may be another than ours.
  const sessionId = sessionIdIn(stringOf(agentMeta['sessionFile'])) ?? agentMeta['sessionId']
  const session: readonly BackendEvent[] = isSessionId(sessionId)
    ? [{ type: 'session', token: options.token(sessionId) }]
    : []
  const before = [...session, ...toolsOf(agentMeta), ...usageOf(agentMeta)]
  const payloads = payloadsOf(turn['payloads'])
  const error = failureOf(stringOf(answer['status']), { meta, payloads, nowMs })
  if (error !== undefined) return [...before, { type: 'failed', error }]
  const reply = createReplyBuilder()
  const texts = payloads.flatMap(({ text }) => {
    reply.startParagraph()
    return reply.append(text)
  })
  const { last, end } = reply.finish(options.backend)
  return [...before, ...texts, ...last, end]
}

interface Payload {
  readonly text: string
  readonly isError: boolean
}

function payloadsOf(payloads: unknown): readonly Payload[] {
  if (!Array.isArray(payloads)) return []
  return payloads.filter(isJsonObject).map(({ text, isError }) => ({ text: stringOf(text), isError: isError === true }))
}

/** Undefined for a good turn. An answer may come with the warning of a failed tool, which is marked as an error too. */
function failureOf(
  status: string,
  {
    meta,
    payloads,
    nowMs,
  }: { readonly meta: JsonObject; readonly payloads: readonly Payload[]; readonly nowMs: number },
): MoleculeError | undefined {
  const complaint = payloads.filter(({ isError }) => isError).map(({ text }) => text)
  const hasAnswer = payloads.some(({ text, isError }) => !isError && text !== '')
  const known = stringOf(memberOf(meta, 'error')['message'])
  const isFailed = known !== '' || (status !== '' && status !== 'ok') || (complaint.length > 0 && !hasAnswer)
  if (!isFailed) return undefined
  return openclawError(complaint.join('\n') || known || `openclaw ended with status ${status}`, nowMs)
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

function memberOf(value: JsonObject, name: string): JsonObject {
  const member = value[name]
  return isJsonObject(member) ? member : {}
}
