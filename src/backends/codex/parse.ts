/**
 * A turn of `codex exec --json`, read: each line of stdout, pure but for what one turn remembers. The turn ends with
 * `turn.completed` or `turn.failed`, not with the exit. `item.type=error` is a warning as often as not, and never ends
 * a turn; `error` is followed by `turn.failed` or by another try.
 */
import { MoleculeError } from '../../errors.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../protocol/json.ts'
import type { BackendEvent } from '../backend.ts'
import { emptyResponse, type ProcessFacts, processFailure } from '../engine/failure/agent-errors.ts'
import type { EndEvent } from '../engine/turn-engine.ts'
import { failureOf } from './outcome.ts'
import { type CodexReply, createCodexReply } from './reply.ts'
import { type CodexSession, NO_TOTALS, type TokenTotals, usedSince, writeSession } from './session.ts'

export interface ExecParserOptions {
  /** The session that was resumed. */
  readonly session: CodexSession | undefined
  /** Of the system prompt of this turn. */
  readonly instructions: string
  readonly facts: ProcessFacts
  readonly warn: (message: string) => void
}

export interface ExecParser {
  read(line: string): readonly BackendEvent[]
  /** The process ended without saying how the turn did. */
  conclude(result: ProcessResult): EndEvent
}

export function createExecParser(turn: ExecParserOptions): ExecParser {
  const reply = createCodexReply()
  let thread: string | undefined
  return {
    read(line) {
      const event = parseJsonObject(line)
      if (event === undefined) return []
      if (event['type'] === 'thread.started') {
        thread = String(event['thread_id'])
        checkThread(thread, turn.session)
        return [{ type: 'activity' }]
      }
      if (event['type'] === 'turn.completed') return finish(event, { ...turn, reply, thread })
      if (event['type'] === 'turn.failed')
        return [failed(failureOf({ message: errorMessageOf(event['error']), nowMs: turn.facts.nowMs }))]
      if (event['type'] === 'error') return [{ type: 'status', text: String(event['message']) }]
      return readItem(event, reply, turn.warn)
    },
    conclude(result) {
      const error = processFailure(result, turn.facts)
      return failed(error ?? new MoleculeError('no_end', 'codex left without an answer', { retryable: true }))
    },
  }
}

/** Asked to resume, and begun anew in silence: the conversation would have lost its memory without anybody knowing. */
function checkThread(thread: string, session: CodexSession | undefined): void {
  if (session === undefined || session.thread === thread) return
  throw new MoleculeError('session_lost', `codex began thread ${thread} instead of going on with ${session.thread}`)
}

interface Finishing extends ExecParserOptions {
  readonly reply: CodexReply
  readonly thread: string | undefined
}

function finish(event: JsonObject, { reply, thread, session, instructions }: Finishing): BackendEvent[] {
  const last = reply.denials()
  const before = session?.totals ?? NO_TOTALS
  const totals = totalsOf(event['usage'])
  const kept = thread === undefined ? [] : [sessionEvent({ thread, totals: totals ?? before, instructions })]
  const used: BackendEvent[] = totals === undefined ? [] : [{ type: 'usage', ...usedSince(before, totals) }]
  return [...last, ...kept, ...used, endOf(reply.text)]
}

const sessionEvent = (session: CodexSession): BackendEvent => ({ type: 'session', token: writeSession(session) })

export function endOf(reply: string): EndEvent {
  if (reply === '') return failed(emptyResponse('codex'))
  return { type: 'done', parts: [{ text: reply }], finality: 'completed' }
}

function totalsOf(usage: unknown): TokenTotals | undefined {
  if (!isJsonObject(usage)) return undefined
  const { input_tokens: input, output_tokens: output } = usage
  return typeof input === 'number' && typeof output === 'number' ? { input, output } : undefined
}

function readItem({ type, item }: JsonObject, reply: CodexReply, warn: (message: string) => void): BackendEvent[] {
  if (!isJsonObject(item)) return [{ type: 'activity' }]
  if (type === 'item.completed' && item['type'] === 'agent_message') {
    return reply.message(String(item['id']), String(item['text'] ?? ''))
  }
  if (type === 'item.completed' && item['type'] === 'error') {
    warn(String(item['message']))
    return [{ type: 'activity' }]
  }
  if (type === 'item.started') return reply.tool(item, 'started')
  return type === 'item.completed' ? reply.tool(item, 'ended') : [{ type: 'activity' }]
}

const failed = (error: MoleculeError): EndEvent => ({ type: 'failed', error })

const errorMessageOf = (error: unknown): string => (isJsonObject(error) ? String(error['message'] ?? '') : '')
