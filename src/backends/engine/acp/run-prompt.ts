/**
 * Runs one prompt on one session of an ACP agent. Updates become events, permission requests get a decision, and the
 * stop reason becomes the end. On a cancel it sends `session/cancel` and gives the agent a moment to stop by itself.
 * Invariant: when this resolves, the session has no listener.
 */
import type { PromptResponse, RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { MoleculeError } from '../../../errors.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { onAbort } from '../../../wait.ts'
import { maxTurnsUsed } from '../failure/agent-errors.ts'
import { createReplyBuilder, type ReplyBuilder, usageEvents } from '../reply-builder.ts'
import type { EndEvent, TurnStream } from '../turn-engine.ts'
import type { AcpAgent } from './acp-agent.ts'
import { agentError, errorInAnswer } from './acp-errors.ts'
import { type AcpPermission, outcomeFor, PERMISSION_CANCELLED, readPermission } from './permission.ts'
import { createUpdateReader, type UpdateReader } from './update-reader.ts'
import { type Unchecked, unchecked } from './wire.ts'

/** How long an agent may take to stop after `session/cancel`; then its process is ended. Real time: it is a process. */
const CANCEL_MS_MAX = 2_000

export interface AcpPermissionDecision {
  readonly allowed: boolean
  /** The owner's settings allow it, so a permanent yes is right too. */
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
  /** False if the agent did not stop in time after a cancel. */
  readonly hasStopped: boolean
}

export async function runPrompt(agent: AcpAgent, options: PromptOptions, stream: TurnStream): Promise<PromptResult> {
  const { sessionId, text } = options
  const reply = createReplyBuilder()
  const reader = createUpdateReader(reply)
  const context: PromptContext = { options, stream, reply, reader }
  const giveUp = new AbortController()
  agent.listeners.set(sessionId, {
    update: (update) => {
      for (const event of reader.read(update)) stream.emit(event)
    },
    permission: (request) => answerPermission(request, context),
  })
  let timer: NodeJS.Timeout | undefined
  const release = onAbort(stream.signal, () => {
    void agent.rpc.notify('session/cancel', { sessionId })
    timer = setTimeout(() => giveUp.abort(), CANCEL_MS_MAX)
  })
  try {
    const params = { sessionId, prompt: [{ type: 'text' as const, text }] }
    const answer = unchecked<PromptResponse>(await agent.rpc.request('session/prompt', params, giveUp.signal))
    for (const event of usageOf(answer, agent, { sessionId, costUsd: reader.costUsd() })) stream.emit(event)
    return { end: endOf(answer, context), hasStopped: true }
  } catch (thrown) {
    const end: EndEvent = { type: 'failed', error: agentError(thrown, options.nowMs) }
    return { end, hasStopped: !giveUp.signal.aborted }
  } finally {
    agent.listeners.delete(sessionId)
    release()
    clearTimeout(timer)
  }
}

interface PromptContext {
  readonly options: PromptOptions
  readonly stream: TurnStream
  readonly reply: ReplyBuilder
  readonly reader: UpdateReader
}

/** Refuses an unreadable request. After a cancel it answers `cancelled`, as ACP demands. */
async function answerPermission(
  request: Unchecked<RequestPermissionRequest>,
  { options, stream, reply, reader }: PromptContext,
): Promise<RequestPermissionResponse> {
  const { toolCall } = request
  const announced = isJsonObject(toolCall) ? reader.toolCall(toolCall['toolCallId']) : undefined
  const permission = readPermission(request, announced)
  if (permission === undefined || stream.signal.aborted) return PERMISSION_CANCELLED
  stream.emit({ type: 'activity' })
  const { allowed, lasting } = await options.decide(permission, stream.signal)
  if (stream.signal.aborted) return PERMISSION_CANCELLED
  if (!allowed) reply.addDenied(permission.tool)
  return { outcome: outcomeFor(permission, allowed ? 'allowed' : 'denied', lasting) }
}

function endOf(answer: Unchecked<PromptResponse>, { options, stream, reply, reader }: PromptContext): EndEvent {
  const { backend, nowMs } = options
  // Some agents end a cancelled turn as if it had succeeded.
  const stopReason = stream.signal.aborted ? 'cancelled' : answer.stopReason
  switch (stopReason) {
    case 'max_turn_requests':
      return { type: 'failed', error: maxTurnsUsed(backend, undefined) }
    case 'cancelled':
      return { type: 'failed', error: new MoleculeError('canceled', `${backend} stopped the turn`) }
    case 'refusal': {
      const text = reply.text() === '' ? 'The agent refuses to continue.' : reply.text()
      return { type: 'done', parts: [{ text }], finality: 'rejected' }
    }
    default:
      break
  }
  if (reader.sawSystemError()) return { type: 'failed', error: errorInAnswer(reply.text(), nowMs) }
  const { last, end } = reply.finish(backend)
  for (const event of last) stream.emit(event)
  return end
}

/**
 * Tokens are in `usage`, which the stable protocol does not have yet, or in gemini's `_meta.quota`. The cost of the turn
 * is the cost of the session minus its cost before.
 */
function usageOf(
  answer: Unchecked<PromptResponse> & { readonly usage?: unknown },
  agent: AcpAgent,
  { sessionId, costUsd }: { readonly sessionId: string; readonly costUsd: number | undefined },
): ReturnType<typeof usageEvents> {
  const meta = isJsonObject(answer._meta) ? answer._meta['quota'] : undefined
  const quota = isJsonObject(meta) && isJsonObject(meta['token_count']) ? meta['token_count'] : {}
  const usage = isJsonObject(answer.usage) ? answer.usage : {}
  const before = agent.sessions.get(sessionId)?.costUsd
  if (costUsd !== undefined) agent.sessions.set(sessionId, { costUsd })
  return usageEvents({
    inputTokens: usage['inputTokens'] ?? quota['inputTokens'] ?? quota['input_tokens'],
    outputTokens: usage['outputTokens'] ?? quota['outputTokens'] ?? quota['output_tokens'],
    costUsd: costUsd === undefined || before === undefined ? undefined : Math.max(0, costUsd - before),
  })
}
