/**
 * Runs one prompt on one session of an ACP agent. Updates become events, permission requests get a decision, and the
 * stop reason becomes the end. On a cancel it sends `session/cancel` and gives the agent a moment to stop by itself.
 * Invariant: when this resolves, the session has no listener.
 */
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { PromptResponse, RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { MoleculeError } from '../../../errors.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import type { TraceContext } from '../../../protocol/trace-context.ts'
import { onAbort } from '../../../wait.ts'
import { agentErrorOf, maxTurnsUsed, refusedEnd } from '../failure/agent-errors.ts'
import { errorInHermesAnswer, HERMES_ACP_NAME } from '../failure/hermes-answer.ts'
import { createReplyBuilder, type ReplyBuilder, usageEvents } from '../reply-builder.ts'
import type { EndEvent, TurnStream } from '../turn-engine.ts'
import { type AcpAgent, FAILED_CALLS_MAX, type FailedCall } from './acp-agent.ts'
import { type AcpErrorMeanings, agentError, errorInAnswer, textError } from './acp-errors.ts'
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
  /** The session was loaded into the process for this prompt. */
  readonly isResumed: boolean
  readonly text: string
  readonly trace?: TraceContext | undefined
  readonly nowMs: number
  readonly workingDir: string
  /** The title of a tool call's first update is the tool's name. */
  readonly titlesAreNames?: boolean | undefined
  /** For the log: a warning of the program is no part of the answer. */
  readonly warn: (words: string) => void
  readonly errorMeanings?: AcpErrorMeanings | undefined
  readonly decide: (permission: AcpPermission, signal: AbortSignal) => Promise<AcpPermissionDecision>
}

export interface PromptResult {
  readonly end: EndEvent
  /** False if the agent did not stop after a cancel or failed calls: it took too long, or answered with an error. */
  readonly hasStopped: boolean
}

export async function runPrompt(agent: AcpAgent, options: PromptOptions, stream: TurnStream): Promise<PromptResult> {
  const { sessionId, text } = options
  const reply = createReplyBuilder()
  const reader = createUpdateReader(reply, options)
  const context: PromptContext = { options, stream, reply, reader }
  const giveUp = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const cancel = () => {
    void agent.rpc.notify('session/cancel', { sessionId })
    timer ??= setTimeout(() => giveUp.abort(), CANCEL_MS_MAX)
  }
  const calls = createCallWatch(stream, options.backend, cancel)
  agent.listeners.set(sessionId, {
    update: (update) => {
      calls.progress()
      for (const event of reader.read(update)) stream.emit(event)
    },
    permission: (request) => answerPermission(request, context),
    callFailed: calls.failed,
  })
  const release = onAbort(stream.signal, cancel)
  try {
    const { trace } = options
    // A warm process has the environment of its first turn, so the trace of this one comes with the prompt.
    const meta = trace === undefined ? {} : { _meta: { ...trace } }
    const params = { sessionId, prompt: [{ type: 'text' as const, text }], ...meta }
    const answer = unchecked<PromptResponse>(await agent.rpc.request('session/prompt', params, giveUp.signal))
    const usage = usageOf(answer, agent, { sessionId, costUsd: reader.costUsd() })
    for (const event of usage) stream.emit(event)
    const { name: agentName } = await agent.greeting
    const end = calls.end(options) ?? endOf(answer, { ...context, agentName, outputTokens: usage[0]?.outputTokens })
    // The process never had this session, although it said that it resumed it.
    if (end.type === 'failed' && end.error.code === 'session_lost') agent.sessions.delete(sessionId)
    return { end, hasStopped: true }
  } catch (thrown) {
    // A cancel that is answered with an error did not stop the agent: hermes then runs its tool to the end, and answers
    // every later prompt only with "Queued for the next turn".
    // stdout may be read before stderr: what the agent logged before its answer is read now.
    await nextIteration()
    const given = calls.end(options)
    const end = given ?? failedEnd(thrown, options, calls.hasFailed())
    return { end, hasStopped: given === undefined && !stream.signal.aborted }
  } finally {
    agent.listeners.delete(sessionId)
    release()
    clearTimeout(timer)
  }
}

interface CallWatch {
  failed(call: FailedCall): void
  /** The agent works: what failed before is over. */
  progress(): void
  /** The last call of the model failed. */
  hasFailed(): boolean
  /** The end of a turn with too many failed calls; undefined if it had fewer. */
  end(options: PromptOptions): EndEvent | undefined
}

/** Watches an agent that retries failed calls of the model in silence, and ends the turn with `giveUp`. */
function createCallWatch(stream: TurnStream, backend: string, giveUp: () => void): CallWatch {
  const counts = new Map<string, number>()
  let isGivenUp = false
  let last: Pick<FailedCall, 'text' | 'status'> | undefined
  return {
    failed({ sessionId, text, status, isRetried }) {
      const count = (counts.get(sessionId) ?? 0) + 1
      counts.set(sessionId, count)
      isGivenUp = isRetried !== true
      const next = count < FAILED_CALLS_MAX ? `${backend} tries it again` : 'the turn ends'
      stream.emit({ type: 'status', text: `a call of the model failed: ${next}` })
      if (count < FAILED_CALLS_MAX || last !== undefined || stream.signal.aborted) return
      last = { text, status }
      giveUp()
    },
    progress: () => counts.clear(),
    hasFailed: () => isGivenUp && counts.size > 0,
    end({ nowMs, errorMeanings }) {
      if (last === undefined || stream.signal.aborted) return undefined
      return { type: 'failed', error: textError(last.text, { status: last.status, nowMs, ...errorMeanings }) }
    },
  }
}

/** `isFinal`: the agent retries a failed call itself if a retry can help, and it did not. */
function failedEnd(thrown: unknown, { nowMs, errorMeanings }: PromptOptions, isFinal: boolean): EndEvent {
  const error = agentError(thrown, nowMs, errorMeanings)
  if (!isFinal || error.code !== 'provider_failed') return { type: 'failed', error }
  return { type: 'failed', error: agentErrorOf('bad_request', { text: error.message, nowMs }) }
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
  const permission = readPermission(request, { announced, workingDir: options.workingDir })
  if (permission === undefined || stream.signal.aborted) return PERMISSION_CANCELLED
  reader.recordRequest(toolCall, permission.subject)
  stream.emit({ type: 'activity' })
  const { allowed, lasting } = await options.decide(permission, stream.signal)
  if (stream.signal.aborted) return PERMISSION_CANCELLED
  if (!allowed) reply.addDenied(permission.tool)
  return { outcome: outcomeFor(permission, allowed ? 'allowed' : 'denied', lasting) }
}

interface AnswerContext extends PromptContext {
  readonly agentName: string | undefined
  /** Undefined if the agent reports no usage. */
  readonly outputTokens: number | undefined
}

function endOf(answer: Unchecked<PromptResponse>, context: AnswerContext): EndEvent {
  const { options, stream, reply, reader, agentName, outputTokens } = context
  const { backend, nowMs } = options
  // Some agents end a cancelled turn as if it had succeeded.
  const stopReason = stream.signal.aborted ? 'cancelled' : answer.stopReason
  switch (stopReason) {
    case 'max_turn_requests':
      return { type: 'failed', error: maxTurnsUsed(backend, undefined) }
    case 'cancelled':
      return { type: 'failed', error: new MoleculeError('canceled', `${backend} stopped the turn`) }
    case 'refusal':
      // hermes "resumes" a session that it does not know by beginning another one, and refuses the prompt for the first.
      if (options.isResumed && reply.text() === '') return { type: 'failed', error: refusedSession(options) }
      return refusedEnd(reply.text())
    default:
      break
  }
  if (reader.sawSystemError()) return { type: 'failed', error: errorInAnswer(reply.text(), nowMs) }
  const error =
    agentName === HERMES_ACP_NAME ? errorInHermesAnswer({ text: reply.text(), outputTokens, nowMs }) : undefined
  if (error !== undefined) return { type: 'failed', error }
  const { last, end } = reply.finish(backend)
  for (const event of last) stream.emit(event)
  return end
}

const refusedSession = ({ backend, sessionId }: PromptOptions) =>
  new MoleculeError('session_lost', `${backend} refuses the first prompt of resumed session ${sessionId}`)

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
  const session = agent.sessions.get(sessionId)
  const before = session?.costUsd
  if (costUsd !== undefined && session !== undefined) agent.sessions.set(sessionId, { ...session, costUsd })
  return usageEvents({
    inputTokens: usage['inputTokens'] ?? quota['inputTokens'] ?? quota['input_tokens'],
    outputTokens: usage['outputTokens'] ?? quota['outputTokens'] ?? quota['output_tokens'],
    costUsd: costUsd === undefined || before === undefined ? undefined : Math.max(0, costUsd - before),
  })
}
