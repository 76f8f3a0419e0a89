/**
 * Reads what codex reports of a turn: the lines of `codex exec --json`, and the notifications of the app server. Pure
 * but for what one turn remembers. An exec turn ends with `turn.completed` or `turn.failed`, not with the exit.
 * `item.type=error` is often a warning and never ends a turn; after `error` comes `turn.failed` or another attempt.
 */
import { MoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import type { AgentOutputParser } from '../engine/cli/one-shot-agent.ts'
import { endWithoutResult, type ProcessFacts } from '../engine/failure/agent-errors.ts'
import { ACTIVITY, type ProgressEvent } from '../engine/reply-builder.ts'
import { failedEnd, finishTurn, NETWORK_WAITS_MAX, networkAway, retryEvents, waitsForNetwork } from './outcome.ts'
import { type CodexReply, createCodexReply } from './reply.ts'
import { type CodexSession, NO_TOTALS, type TokenTotals } from './session.ts'

export interface ExecParserOptions {
  /** The session that was resumed. */
  readonly session: CodexSession | undefined
  /** Hash of the system prompt of this turn. */
  readonly instructions: string
  readonly facts: ProcessFacts
  readonly warn: (message: string) => void
}

/** The parser of `codex exec --json`. */
export function createExecParser({ session, instructions, facts, warn }: ExecParserOptions): AgentOutputParser {
  const reply = createCodexReply()
  let thread: string | undefined
  let networkWaits = 0
  const readError = (message: string): readonly BackendEvent[] => {
    if (waitsForNetwork(message)) networkWaits += 1
    if (networkWaits >= NETWORK_WAITS_MAX) return [{ type: 'failed', error: networkAway(message) }]
    return retryEvents(message)
  }
  return {
    read(line) {
      const event = parseJsonObject(line)
      if (event === undefined) return []
      switch (event['type']) {
        case 'thread.started':
          thread = String(event['thread_id'])
          checkThread(thread, session)
          return ACTIVITY
        case 'turn.completed': {
          const before = session?.totals ?? NO_TOTALS
          const totals = totalsOf(event['usage'])
          const { last, end } = finishTurn(reply, { thread, totals, instructions, before })
          return [...last, end]
        }
        case 'turn.failed':
          return [failedEnd({ message: messageOf(event['error']) }, facts.nowMs)]
        case 'error':
          return readError(String(event['message']))
        default:
          // Codex works again: two short outages of a long turn do not end it.
          networkWaits = 0
          return readItem(event, reply, warn)
      }
    },
    conclude: (result, stdout) => endWithoutResult({ backend: 'codex', facts }, result, stdout),
  }
}

/** Without this check a conversation loses its memory unnoticed: codex may begin a new thread instead of resuming. */
function checkThread(thread: string, session: CodexSession | undefined): void {
  if (session === undefined || session.thread === thread) return
  throw new MoleculeError('session_lost', `codex began thread ${thread} instead of resuming ${session.thread}`)
}

function readItem({ type, item }: JsonObject, reply: CodexReply, warn: ExecParserOptions['warn']): BackendEvents {
  if (!isJsonObject(item)) return ACTIVITY
  if (type === 'item.started') return reply.tool(item, 'started')
  if (type !== 'item.completed') return ACTIVITY
  if (item['type'] === 'agent_message') return reply.message(String(item['id']), String(item['text'] ?? ''))
  if (item['type'] !== 'error') return reply.tool(item, 'ended')
  warn(String(item['message']))
  return ACTIVITY
}

type BackendEvents = readonly BackendEvent[]

/** What the reader of one app-server turn remembers. */
export interface NotificationState {
  readonly reply: CodexReply
  /** File changes by the id of their item: codex asks for permission by that id alone. */
  readonly changes: Map<string, string>
  /** Ids of the messages that codex calls commentary. */
  readonly commentary: Set<string>
}

/** The events of one notification of the app server. */
export function readNotification(
  method: string,
  params: JsonObject,
  { reply, changes, commentary }: NotificationState,
): readonly ProgressEvent[] {
  const item = isJsonObject(params['item']) ? params['item'] : {}
  const id = String(item['id'] ?? params['itemId'])
  switch (method) {
    case 'item/agentMessage/delta':
      return commentary.has(id) ? ACTIVITY : reply.delta(id, String(params['delta'] ?? ''))
    case 'item/started':
      if (item['type'] === 'fileChange') changes.set(id, JSON.stringify(item['changes']))
      if (item['type'] === 'agentMessage' && item['phase'] === 'commentary') commentary.add(id)
      return reply.tool(item, 'started')
    case 'item/completed': {
      if (item['type'] !== 'agentMessage') return reply.tool(item, 'ended')
      const text = String(item['text'] ?? '')
      if (!commentary.has(id)) return reply.message(id, text)
      return text === '' ? [] : [{ type: 'status', text }]
    }
    case 'error':
      return params['willRetry'] === true ? retryEvents(messageOf(params['error'])) : []
    default:
      return ACTIVITY
  }
}

/** The tokens of a thread: `usage` of `turn.completed`, or `tokenUsage.total` of the app server. */
export function totalsOf(usage: unknown): TokenTotals | undefined {
  if (!isJsonObject(usage)) return undefined
  const input = usage['input_tokens'] ?? usage['inputTokens']
  const output = usage['output_tokens'] ?? usage['outputTokens']
  return typeof input === 'number' && typeof output === 'number' ? { input, output } : undefined
}

export const messageOf = (error: unknown): string => (isJsonObject(error) ? String(error['message'] ?? '') : '')
