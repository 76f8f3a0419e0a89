/**
 * One prompt on one session of an ACP agent: what the agent says becomes events, what it asks permission for is
 * decided, and the way it stops becomes the end. A cancel is told to the agent, which then has a moment to stop by
 * itself. Invariant: when this resolves nobody listens to the session any more.
 */
import { MoleculeError } from '../../../errors.ts'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import type { BackendEvent } from '../../backend.ts'
import { maxTurnsUsed } from '../failure/agent-errors.ts'
import { createReplyBuilder, type ReplyBuilder } from '../reply-builder.ts'
import type { EndEvent, TurnStream } from '../turn-engine.ts'
import type { AcpAgent } from './acp-agent.ts'
import { agentError, errorInAnswer } from './acp-errors.ts'
import { type AcpPermission, outcomeFor, readPermission } from './permission.ts'
import { createUpdateReader, type UpdateReader } from './update-reader.ts'

/** What an agent gets to stop by itself once it was told to; real time, it watches a process. */
const CANCEL_MS = 2_000

export interface AcpPermissionDecision {
  readonly allowed: boolean
  /** By the owner's settings: then a yes for good is as well. */
  readonly lasting: boolean
}

export interface PromptOptions {
  readonly backend: string
  readonly sessionId: string
  readonly text: string
  readonly nowMs: number
  readonly decide: (permission: AcpPermission, signal: AbortSignal) => Promise<AcpPermissionDecision>
}

export interface PromptResult {
  readonly end: EndEvent
  /** False where the agent did not stop when it was told to. */
  readonly hasStopped: boolean
}

export async function runPrompt(agent: AcpAgent, options: PromptOptions, stream: TurnStream): Promise<PromptResult> {
  const { sessionId, text } = options
  const answer = createReplyBuilder()
  const reader = createUpdateReader(answer)
  const hard = new AbortController()
  agent.listeners.set(sessionId, {
    update: (update) => {
      for (const event of reader.read(update)) stream.emit(event)
    },
    permission: (params) => answerPermission(params, { options, stream, answer, reader }),
  })
  const stopping = cancelOnAbort(() => agent.rpc.notify('session/cancel', { sessionId }), stream.signal, hard)
  try {
    const prompt = [{ type: 'text', text }]
    const result = await agent.rpc.request('session/prompt', { sessionId, prompt }, hard.signal)
    const reply = isJsonObject(result) ? result : {}
    for (const event of usageOf(reply, agent, { sessionId, costUsd: reader.costUsd() })) stream.emit(event)
    return { end: endOf(reply, { options, stream, answer, reader }), hasStopped: true }
  } catch (thrown) {
    const end: EndEvent = { type: 'failed', error: agentError(thrown, options.nowMs) }
    return { end, hasStopped: !hard.signal.aborted }
  } finally {
    agent.listeners.delete(sessionId)
    stopping.release()
  }
}

/** On abort: `session/cancel`, and after a moment nobody waits for the agent any more. */
function cancelOnAbort(tell: () => Promise<unknown>, signal: AbortSignal, hard: AbortController) {
  let timer: NodeJS.Timeout | undefined
  const onAbort = () => {
    void tell()
    timer = setTimeout(() => hard.abort(), CANCEL_MS)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  return {
    release: () => {
      signal.removeEventListener('abort', onAbort)
      clearTimeout(timer)
    },
  }
}

interface Prompting {
  readonly options: PromptOptions
  readonly stream: TurnStream
  readonly answer: ReplyBuilder
  readonly reader: UpdateReader
}

/** What cannot be read is refused; what is asked after a cancel is answered as ACP wants it. */
async function answerPermission(params: JsonObject, { options, stream, answer, reader }: Prompting): Promise<unknown> {
  const { toolCall } = params
  const told = isJsonObject(toolCall) ? reader.toolCall(toolCall['toolCallId']) : undefined
  const permission = readPermission(params, told)
  if (permission === undefined || stream.signal.aborted) return { outcome: { outcome: 'cancelled' } }
  stream.emit({ type: 'activity' })
  const { allowed, lasting } = await options.decide(permission, stream.signal)
  if (stream.signal.aborted) return { outcome: { outcome: 'cancelled' } }
  if (!allowed) answer.addDenied(permission.tool)
  return { outcome: outcomeFor(permission, allowed ? 'allowed' : 'denied', lasting) }
}

function endOf(reply: JsonObject, { options, stream, answer, reader }: Prompting): EndEvent {
  const { backend, nowMs } = options
  // Some end a cancelled turn as if it had gone well.
  const stopReason = stream.signal.aborted ? 'cancelled' : reply['stopReason']
  switch (stopReason) {
    case 'max_turn_requests':
      return { type: 'failed', error: maxTurnsUsed(backend, undefined) }
    case 'cancelled':
      return { type: 'failed', error: new MoleculeError('canceled', `${backend} stopped the turn`) }
    case 'refusal': {
      const text = answer.text() === '' ? 'The agent refuses to go on.' : answer.text()
      return { type: 'done', parts: [{ text }], finality: 'rejected' }
    }
  }
  if (reader.sawSystemError()) return { type: 'failed', error: errorInAnswer(answer.text(), nowMs) }
  const { last, end } = answer.finish(backend)
  for (const event of last) stream.emit(event)
  return end
}

interface Spent {
  readonly sessionId: string
  readonly costUsd: number | undefined
}

/** Tokens as ACP has them now, or in `_meta.quota` as gemini does; cost as the difference to the session's before. */
function usageOf(reply: JsonObject, agent: AcpAgent, { sessionId, costUsd }: Spent): readonly UsageEvent[] {
  const meta = isJsonObject(reply['_meta']) ? reply['_meta']['quota'] : undefined
  const quota = isJsonObject(meta) && isJsonObject(meta['token_count']) ? meta['token_count'] : {}
  const usage = isJsonObject(reply['usage']) ? reply['usage'] : {}
  const inputTokens = numberOf(usage['inputTokens'] ?? quota['inputTokens'] ?? quota['input_tokens'])
  const outputTokens = numberOf(usage['outputTokens'] ?? quota['outputTokens'] ?? quota['output_tokens'])
  const before = agent.sessions.get(sessionId)?.costUsd
  const spent = costUsd === undefined || before === undefined ? undefined : Math.max(0, costUsd - before)
  if (costUsd !== undefined) agent.sessions.set(sessionId, { costUsd })
  if (inputTokens === undefined && outputTokens === undefined && spent === undefined) return []
  return [
    {
      type: 'usage',
      ...(inputTokens !== undefined && { inputTokens }),
      ...(outputTokens !== undefined && { outputTokens }),
      ...(spent !== undefined && { costUsd: spent }),
    },
  ]
}

type UsageEvent = Extract<BackendEvent, { type: 'usage' }>

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
