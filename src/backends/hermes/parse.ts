/**
 * Parses what `hermes chat --format stream-json` prints: `system/init` with the session, text deltas, tools, one
 * `result`. Some failures come as the answer with exit code 0 (hermes-answer.ts). For a session that it does not know,
 * hermes prints a vague `result`, and the reason only on stderr; the reason of a missing setup is plain text on stdout.
 */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../engine/cli/one-shot-agent.ts'
import { endWithoutResult, providerError } from '../engine/failure/agent-errors.ts'
import { errorInHermesAnswer } from '../engine/failure/hermes-answer.ts'
import { stderrTail } from '../engine/failure/run-failure.ts'
import { ACTIVITY, createReplyBuilder, type ReplyBuilder, usageEvents } from '../engine/reply-builder.ts'
import { isSessionId } from '../engine/session-prompt.ts'
import { subjectOfInput } from '../engine/tool-use.ts'

const SESSION_LOST = /^(?:Error: )?Session not found: /m
/** Not in a line of JSON, which holds the words of a model or a tool. */
const NOT_CONFIGURED = /^(?!\{).*Hermes isn't configured yet.*$/m
const DENIED = /^(?:BLOCKED|Command (?:denied|blocked))|approval (?:denied|required)/i
/** hermes prints its session on stderr after every run. */
const SESSION_LINE = /^session_id: \S+$/m

export function createHermesParser(options: AgentOutputParserOptions): AgentOutputParser {
  const reply = createReplyBuilder()
  /** Tools that run, oldest first. A result names only its tool. */
  const running: ReturnType<typeof toolUseOf>[] = []
  /** The error of a failed `result` without a status: stderr may have the reason, so the exit ends the turn. */
  let vagueError: string | undefined
  const read = (event: JsonObject): readonly BackendEvent[] => {
    switch (event['type']) {
      case 'system':
        return sessionOf(event, options)
      case 'text':
        return reply.append(stringOf(event['text']))
      case 'tool_use': {
        reply.startParagraph()
        const use = toolUseOf(event)
        running.push(use)
        return [{ type: 'tool', ...use, state: 'started' }]
      }
      case 'tool_result': {
        const at = running.findIndex(({ name }) => name === toolUseOf(event).name)
        const [use = toolUseOf(event)] = at < 0 ? [] : running.splice(at, 1)
        if (isDenied(event)) reply.addDenied(use.name)
        return [{ type: 'tool', ...use, state: isDenied(event) || event['is_error'] === true ? 'failed' : 'finished' }]
      }
      case 'result': {
        const end = endOf(event, options, reply)
        if (end === undefined) vagueError = stringOf(event['error']) || stringOf(event['text'])
        return [...sessionOf(event, options), ...usageOf(event['tokens']), ...(end ?? [])]
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
    conclude: (result, stdout) => {
      const stderr = new TextDecoder().decode(result.stderrTail)
      if (result.end === 'exited' && SESSION_LOST.test(`${stderr}\n${stdout}`)) {
        const message = `hermes does not know session ${options.sessionId ?? ''}`
        return { type: 'failed', error: new MoleculeError('session_lost', message) }
      }
      const [notConfigured] = NOT_CONFIGURED.exec(stdout) ?? []
      if (notConfigured !== undefined) {
        const message = `hermes is not configured: ${notConfigured.trim()} Run "hermes setup".`
        return { type: 'failed', error: new MoleculeError('auth_failed', message) }
      }
      if (vagueError === undefined) return endWithoutResult(options, result, stdout)
      const text = [vagueError, stderrTail(result).replace(SESSION_LINE, '').trim()].filter(Boolean).join(': ')
      return { type: 'failed', error: providerError(options.backend, { text, nowMs: options.facts.nowMs }) }
    },
  }
}

/** The last session counts: when hermes compresses a long session, it continues in a new one within the turn. */
function sessionOf({ session_id: id }: JsonObject, { token }: AgentOutputParserOptions): readonly BackendEvent[] {
  return isSessionId(id) ? [{ type: 'session', token: token(id) }] : ACTIVITY
}

function toolUseOf({ name, input }: JsonObject) {
  return { name: stringOf(name) || 'tool', ...(isJsonObject(input) && { subject: subjectOfInput(input) }) }
}

/** hermes reports a blocked command as JSON with the reason, or as plain text. */
function isDenied({ output }: JsonObject): boolean {
  const text = stringOf(output)
  const result = parseJsonObject(text)
  return result?.['status'] === 'blocked' || DENIED.test(stringOf(result?.['error']) || text)
}

/** Undefined for a failure without an HTTP status. */
function endOf(
  event: JsonObject,
  { backend, facts: { nowMs } }: AgentOutputParserOptions,
  reply: ReplyBuilder,
): readonly BackendEvent[] | undefined {
  const text = stringOf(event['text'])
  const complaint = stringOf(event['error'])
  const isFailed = event['exit_code'] !== 0 || complaint !== ''
  // A failed result is an error whatever the model wrote before it.
  const outputTokens = isFailed ? 0 : outputTokensOf(event['tokens'])
  const error = errorInHermesAnswer({ text: complaint || text, outputTokens, nowMs })
  if (error !== undefined) return [{ type: 'failed', error }]
  if (isFailed) return undefined
  // Without streamed text the result holds the whole answer.
  const whole = reply.text() === '' ? reply.append(text) : []
  const { last, end } = reply.finish(backend)
  return [...whole, ...last, end]
}

function usageOf(tokens: unknown): readonly BackendEvent[] {
  return isJsonObject(tokens) ? usageEvents({ inputTokens: tokens['input'], outputTokens: tokens['output'] }) : []
}

function outputTokensOf(tokens: unknown): number | undefined {
  const output = isJsonObject(tokens) ? tokens['output'] : undefined
  return typeof output === 'number' ? output : undefined
}
