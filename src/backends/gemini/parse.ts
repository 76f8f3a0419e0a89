/**
 * What gemini prints with `--output-format stream-json`, and what its exit code means: 41 no log-in, 42 a session it
 * does not know, 53 out of turns, 55 an untrusted folder, and from 144 up the provider's HTTP status modulo 256. So a
 * failure is told only with the exit: its words alone may not say that it was a rate limit.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { classifyAgentError, maxTurnsUsed, processFailure } from '../engine/failure/agent-errors.ts'
import { stderrTail } from '../engine/failure/run-failure.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'

const EXIT_AUTH = 41
const EXIT_INPUT = 42
const EXIT_TURNS = 53
const EXIT_UNTRUSTED = 55
/** 400 - 256 */
const EXIT_STATUS_MIN = 144

export function createGeminiParser(reading: AgentOutputParserOptions): AgentOutputParser {
  const answer = createReplyBuilder()
  const tools = new Map<unknown, string>()
  let complaint: string | undefined
  const read = (event: JsonObject): readonly BackendEvent[] => {
    switch (event['type']) {
      case 'init':
        return isSessionId(event['session_id'])
          ? [{ type: 'session', token: reading.token(event['session_id']) }]
          : ACTIVITY
      case 'message':
        return event['role'] === 'assistant' ? answer.append(stringOf(event['content'])) : ACTIVITY
      case 'tool_use':
        answer.startParagraph()
        tools.set(event['tool_id'], stringOf(event['tool_name']))
        return [{ type: 'tool', name: stringOf(event['tool_name']), state: 'started' }]
      case 'tool_result': {
        const name = tools.get(event['tool_id']) ?? 'tool'
        if (isDenied(event)) answer.addDenied(name)
        return [{ type: 'tool', name, state: event['status'] === 'success' ? 'finished' : 'failed' }]
      }
      case 'result':
        if (event['status'] !== 'success') complaint = errorMessageOf(event['error'])
        return [...usageOf(event['stats']), ...(complaint === undefined ? endOf(reading, answer) : [])]
      default:
        return ACTIVITY
    }
  }
  return {
    read: (line) => {
      const event = parseJsonObject(line)
      return event === undefined ? ACTIVITY : read(event)
    },
    conclude: (result) => ({ type: 'failed', error: failureOf(result, complaint, reading) }),
  }
}

function endOf(reading: AgentOutputParserOptions, answer: ReplyBuilder): readonly BackendEvent[] {
  const { last, end } = answer.finish(reading.backend)
  return [...last, end]
}

const errorMessageOf = (error: unknown): string =>
  (isJsonObject(error) && stringOf(error['message'])) || 'gemini failed and said nothing'

function failureOf(
  result: ProcessResult,
  complaint: string | undefined,
  reading: AgentOutputParserOptions,
): MoleculeError {
  const stderr = stderrTail(result)
  const { exitCode } = result
  if (result.end === 'exited' && exitCode !== null) {
    const known = exitCodeError(exitCode, stderr, reading)
    if (known !== undefined) return known
    const isStatus = exitCode >= EXIT_STATUS_MIN
    const status = isStatus ? exitCode + 256 : undefined
    if (complaint !== undefined || isStatus) return modelError(complaint ?? stderr, status, reading)
  }
  const failure = processFailure(result, reading.facts)
  return failure ?? new MoleculeError('agent_failed', 'gemini ended without a result', { retryable: true })
}

/** `[API Error: {"error":{"code":429,...}}]`, or in plain words. */
function modelError(
  text: string,
  exitStatus: number | undefined,
  { facts: { nowMs } }: AgentOutputParserOptions,
): MoleculeError {
  const [json] = /\{.*\}/s.exec(text) ?? []
  const body = json === undefined ? undefined : parseJsonObject(json)
  const inner = isJsonObject(body?.['error']) ? body['error'] : {}
  const status = typeof inner['code'] === 'number' ? inner['code'] : exitStatus
  return classifyAgentError({ text, status, nowMs }) ?? new MoleculeError('provider_failed', text, { retryable: true })
}

function exitCodeError(exitCode: number, stderr: string, reading: AgentOutputParserOptions): MoleculeError | undefined {
  const details = { exitCode, stderr }
  if (exitCode === EXIT_AUTH) {
    return new MoleculeError('auth_failed', `gemini is not logged in: ${stderr}`, { details })
  }
  if (exitCode === EXIT_INPUT && reading.sessionId !== undefined) {
    const message = `gemini does not know session ${reading.sessionId}: ${stderr}`
    return new MoleculeError('session_lost', message, { details })
  }
  if (exitCode === EXIT_TURNS) return maxTurnsUsed(reading.backend, undefined)
  if (exitCode === EXIT_UNTRUSTED) {
    return new MoleculeError('bad_config', `gemini does not trust the working folder: ${stderr}`, { details })
  }
  return undefined
}

function usageOf(stats: unknown): readonly BackendEvent[] {
  if (!isJsonObject(stats)) return []
  const { input_tokens: inputTokens, output_tokens: outputTokens } = stats
  if (typeof inputTokens !== 'number' || typeof outputTokens !== 'number') return []
  return [{ type: 'usage', inputTokens, outputTokens }]
}

function isDenied({ error, output }: JsonObject): boolean {
  const type = isJsonObject(error) ? String(error['type']) : ''
  return (
    /denied|policy|execution_not_allowed/i.test(type) ||
    /denied by policy|requires? user confirmation/i.test(stringOf(output))
  )
}
