/**
 * One turn through the HTTP endpoint of openclaw's gateway: the warm way, without a process of ours. The session has the
 * same key as on the command line, so a conversation continues over both ways. Closing the connection
 * stops the turn. A gateway that is away or does not serve us is a refusal (outcome.ts), before anything has begun.
 */
import { randomUUID } from 'node:crypto'
import type { Outbound } from '../../client/outbound.ts'
import { MoleculeError } from '../../errors.ts'
import { type JsonObject, parseJsonObject, stringOf } from '../../protocol/json.ts'
import type { BackendContext, Turn } from '../backend.ts'
import { readChatCompletion, readErrorBody, STREAM_BYTES_MAX } from '../engine/chat-completion.ts'
import { promptWithFiles, writeAttachments } from '../engine/files/attachments.ts'
import { sessionPromptOf } from '../engine/session-prompt.ts'
import type { EndEvent, TurnStream } from '../engine/turn-engine.ts'
import { sessionKeyOf } from './args.ts'
import { findGateway, type Gateway, type GatewaySource, isRefusedConnection } from './gateway.ts'
import { gatewayRefusal, openclawError } from './outcome.ts'

/** The endpoint is off (404, 405), or wants another login (401, 403). openclaw's own program may still get through. */
const CLOSED_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405])
/** With the option `timeout: none`, the wait for the first byte ends after this. */
const HEADERS_MS_MAX = 24 * 3600_000

export interface HttpTurnContext {
  readonly context: BackendContext
  readonly outbound: Outbound
  readonly source: GatewaySource
  readonly agent: string
  readonly model: (turn: Turn) => string | undefined
  readonly timeoutMs: number | undefined
}

export async function runHttpTurn(options: HttpTurnContext, turn: Turn, stream: TurnStream): Promise<EndEvent> {
  const { context, source } = options
  const { clock, outbound } = context
  const gateway = await findGateway(source)
  if (gateway.usesTls) throw gatewayRefusal('closed', 'the gateway of openclaw uses its own certificate')
  const files = { workingDir: turn.workingDir, turnId: turn.id, clock, outbound }
  const attached = await writeAttachments(turn.request.parts, files, stream.signal)
  const session = sessionPromptOf({ ...turn, prompt: promptWithFiles(turn.prompt, attached.promptLines) })
  const sessionId = session.sessionId ?? randomUUID()
  const request = { gateway, sessionId, prompt: session.prompt, model: options.model(turn) }
  const answer = await postCompletion(options, request, stream.signal)
  stream.emit({ type: 'session', token: session.token(sessionId) })
  const warn = (message: string) => context.log.warn({ workspace: turn.request.workspace_id }, message)
  const failureInStream = (error: JsonObject) => errorOf(error, clock.nowMs())
  for await (const event of readChatCompletion(answer, { warn, failureInStream })) {
    if (event.type === 'done' || event.type === 'failed') return event
    stream.emit(event)
  }
  throw new MoleculeError('no_end', 'the gateway of openclaw ended its answer early', { retryable: true })
}

interface CompletionRequest {
  readonly gateway: Gateway
  readonly sessionId: string
  readonly prompt: string
  readonly model: string | undefined
}

async function postCompletion(
  { outbound, agent, timeoutMs = HEADERS_MS_MAX, context }: HttpTurnContext,
  { gateway, sessionId, prompt, model }: CompletionRequest,
  signal: AbortSignal,
) {
  const messages = [{ role: 'user', content: prompt }]
  const body = { model: `openclaw/${agent}`, messages, stream: true, stream_options: { include_usage: true } }
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'text/event-stream',
    'X-Openclaw-Session-Key': sessionKeyOf(agent, sessionId),
    ...(model !== undefined && { 'X-Openclaw-Model': model }),
    ...gateway.headers,
  }
  const url = `${gateway.url}/v1/chat/completions`
  const request = { url, method: 'POST', headers, body: JSON.stringify(body), trusted: true } as const
  const limits = { headersMs: timeoutMs, bytesMax: STREAM_BYTES_MAX }
  const answer = await outbound.send({ ...request, ...limits }, signal).catch((thrown: unknown) => {
    if (isRefusedConnection(thrown)) throw gatewayRefusal('away', `no gateway of openclaw at ${gateway.url}`, thrown)
    throw thrown
  })
  if (answer.status === 200) return answer
  if (CLOSED_STATUSES.has(answer.status)) {
    answer.discard()
    throw gatewayRefusal('closed', `the gateway of openclaw answered HTTP ${answer.status} at ${url}`)
  }
  throw refusalOf(answer.status, await readErrorBody(answer), context.clock.nowMs())
}

function refusalOf(status: number, body: string, nowMs: number): MoleculeError {
  const error = parseJsonObject(body)?.['error']
  const message = stringOf((error as JsonObject | undefined)?.['message']) || body.trim().slice(0, 500)
  // An unknown agent, a model that does not exist: only the owner's settings can mend it.
  if (status === 400) return new MoleculeError('bad_config', `the gateway of openclaw refuses the request: ${message}`)
  return openclawError(`HTTP ${status}: ${message}`, nowMs)
}

/** `{"message": "429 Rate limit reached ...", "type": "rate_limit_error"}` */
function errorOf(error: JsonObject, nowMs: number): MoleculeError {
  const type = stringOf(error['type'])
  return openclawError(`${stringOf(error['message'])}${type && ` (${type})`}`, nowMs)
}
