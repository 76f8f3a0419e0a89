/**
 * The envelope: a message as it arrived, which is its only stored form. The canonical message is read from it, so that
 * nothing is stored twice and nothing is lost. A door reads it, the inbox writes and hashes it, the runtime restores it
 * and makes the backend's request from it.
 * Invariant: `restoreEnvelope` returns an envelope equal to the one that `readEnvelope` read.
 */
import { hash } from 'node:crypto'
import type { Message, Metadata, Role } from './a2a.ts'
import { invalidRequest } from './invalid-request.ts'
import { canonicalJson, isJsonObject, type JsonObject } from './json.ts'
import { type A2aMethod, type JsonRpcRequest, methodOf } from './json-rpc.ts'
import { readPart, toRequestPart } from './part.ts'
import type { Request, Sender } from './request.ts'
import {
  JSON_DEPTH_MAX,
  jsonDepthWithin,
  jsonRpcRequestSchema,
  messageSendParamsSchema,
  parseInput,
  sendMessageParamsSchema,
} from './schemas.ts'
import type { TraceContext } from './trace-context.ts'

export type ProtocolVersion = '1.0' | '0.3'

export interface Envelope {
  readonly version: ProtocolVersion
  /** `SendMessage`, `message/send`, ...: the name in its version. */
  readonly method: string
  /** The message in 1.0 form. */
  readonly message: Message
  /** The JSON-RPC request as it arrived, without the URLs and credentials of push notifications. */
  readonly raw: unknown
  /** The W3C trace that the message belongs to. */
  readonly trace?: TraceContext
}

/** Reads an untrusted body. Throws `invalid_request` that names the place of the problem. */
export function readEnvelope(raw: unknown): Envelope {
  if (!jsonDepthWithin(raw, JSON_DEPTH_MAX))
    throw invalidRequest('the request', `is nested deeper than ${JSON_DEPTH_MAX} levels`)
  parseInput(jsonRpcRequestSchema, raw, '')
  return readSend(raw as JsonRpcRequest)
}

/** Reads a send of either version; the method name gives the version. `parseJsonRpc` has checked the request itself. */
export function readSend(raw: JsonRpcRequest): Envelope {
  const { method, params } = raw
  const known = sendMethod(method)
  if (known === undefined) throw invalidRequest('method', 'does not send a message')
  parseInput(known.version === '1.0' ? sendMessageParamsSchema : messageSendParamsSchema, params, 'params')
  const message = readMessage((params as SendParams).message)
  return { version: known.version, method, message, raw: withoutCredentials(withoutTrace(raw as unknown as RawSend)) }
}

/**
 * The envelope of a message that did not come as a request: from a chat, a schedule, a tool, a finished delegation. Its key is the
 * id of the message.
 */
export const envelopeOf = (message: Omit<Message, 'role'>): Envelope =>
  readEnvelope({
    jsonrpc: '2.0',
    id: message.messageId,
    method: 'SendMessage',
    params: { message: { ...message, role: 'ROLE_USER' } },
  })

function withoutTrace(raw: RawSend): RawSend {
  if (!Object.hasOwn(raw, TRACE_KEY) && !Object.hasOwn(raw, TRACE_STATE_KEY)) return raw
  const { [TRACE_KEY]: _claimed, [TRACE_STATE_KEY]: _state, ...rest } = raw
  return rest as RawSend
}

/** The envelope with more metadata on its message, in the canonical and in the stored form. */
export function withMessageMetadata(envelope: Envelope, more: Metadata): Envelope {
  const raw = envelope.raw as RawSend
  const { message } = raw.params
  const metadata = { ...message.metadata, ...more }
  return {
    ...envelope,
    message: { ...envelope.message, metadata },
    raw: { ...raw, params: { ...raw.params, message: { ...message, metadata } } },
  }
}

/** The envelope with another text, in the canonical and in the stored form. The other parts stay. */
export function withMessageText({ raw: stored, ...envelope }: Envelope, text: string): Envelope {
  const raw = stored as RawSend
  const others = raw.params.message.parts.filter((_, index) => envelope.message.parts[index]?.text === undefined)
  const typed = envelope.version === '1.0' ? { text } : { kind: 'text', text }
  const parts = text === '' && others.length > 0 ? others : [typed, ...others]
  const message = { ...raw.params.message, parts }
  return { ...envelope, message: readMessage(message), raw: { ...raw, params: { ...raw.params, message } } }
}

/** The text that is stored. */
export function writeEnvelope(envelope: Envelope): string {
  const { raw, trace } = envelope
  if (trace === undefined) return JSON.stringify(raw)
  const { traceparent, tracestate } = trace
  // A member that is undefined is not written.
  return JSON.stringify({ ...(raw as RawSend), [TRACE_KEY]: traceparent, [TRACE_STATE_KEY]: tracestate })
}

/** The stored members for the trace. Members of these names from the sender are dropped. */
const TRACE_KEY = '_traceparent'
const TRACE_STATE_KEY = '_tracestate'

/** The trace of a stored envelope. To search a text is fast; most messages have none, and it may have 8 MiB. */
export const traceIn = (stored: string): TraceContext | undefined =>
  stored.includes(TRACE_KEY) ? restoreEnvelope(stored).trace : undefined

/** Reads a stored envelope. It was checked at admission and is not checked again, because every lease restores one. */
export function restoreEnvelope(stored: string): Envelope {
  const kept = JSON.parse(stored) as RawSend
  const version = sendMethod(kept.method)?.version ?? '1.0'
  const envelope = { version, method: kept.method, message: readMessage(kept.params.message) }
  if (!Object.hasOwn(kept, TRACE_KEY)) return { ...envelope, raw: kept }
  const { [TRACE_KEY]: traceparent, [TRACE_STATE_KEY]: tracestate, ...raw } = kept
  const state = tracestate === undefined ? {} : { tracestate: String(tracestate) }
  return { ...envelope, raw, trace: { traceparent: String(traceparent), ...state } }
}

export interface RequestOrigin {
  readonly workspaceId: string
  /** The sending workspace; empty for a person. */
  readonly callerId: string
  readonly taskId: string
  readonly contextId: string
  readonly idempotencyKey: string
  readonly sender: Sender
  readonly envelope: Envelope
}

/** The backend's request. */
export function toRequest(origin: RequestOrigin): Request {
  const { message, method, raw } = origin.envelope
  return {
    workspace_id: origin.workspaceId,
    caller_id: origin.callerId,
    message_id: message.messageId,
    idempotency_key: origin.idempotencyKey,
    task_id: origin.taskId,
    context_id: origin.contextId,
    parts: message.parts.map(toRequestPart),
    method,
    sender: origin.sender,
    raw,
  }
}

/** SHA-256 of role and parts, in hex. The message's metadata and the configuration do not count. */
export function contentHash(message: Message): string {
  return hash('sha256', canonicalJson({ role: message.role, parts: message.parts }), 'hex')
}

export interface SendOptions {
  /** The call waits until the task is final or interrupted. */
  readonly blocking: boolean
  readonly historyLength?: number
  readonly acceptedOutputModes?: readonly string[]
}

/** How the sender wants its answer. Both versions block by default. */
export function sendOptions(envelope: Envelope): SendOptions {
  const configuration = (envelope.raw as RawSend).params.configuration ?? {}
  const { blocking, returnImmediately, historyLength, acceptedOutputModes } = configuration
  return {
    blocking: envelope.version === '1.0' ? returnImmediately !== true : blocking !== false,
    ...(typeof historyLength === 'number' ? { historyLength } : {}),
    ...(Array.isArray(acceptedOutputModes) ? { acceptedOutputModes } : {}),
  }
}

/** The dedupe key in the message, if the sender set one. */
export function idempotencyKey(envelope: Envelope): string | undefined {
  const { metadata, message } = (envelope.raw as RawSend).params
  const key = metadata?.['idempotency_key'] || message.metadata?.['idempotency_key'] || message.idempotency_key
  return typeof key === 'string' && key !== '' ? key : undefined
}

/** A send that the schemas have accepted. Optional fields may be null. */
interface RawSend extends JsonObject {
  readonly method: string
  readonly params: SendParams
}

interface SendParams {
  readonly message: RawMessage
  readonly configuration?: JsonObject | null
  readonly metadata?: JsonObject | null
}

interface RawMessage {
  readonly messageId: string
  readonly contextId?: string | null
  readonly taskId?: string | null
  readonly role: Role | 'user' | 'agent'
  readonly parts: readonly unknown[]
  readonly metadata?: Metadata | null
  readonly extensions?: readonly string[] | null
  readonly referenceTaskIds?: readonly string[] | null
  readonly idempotency_key?: string | null
}

function sendMethod(name: string): A2aMethod | undefined {
  const method = methodOf(name)
  return method?.name1_0 === 'SendMessage' || method?.name1_0 === 'SendStreamingMessage' ? method : undefined
}

/** An empty id counts as absent, because protocol buffers cannot tell the two apart. */
function readMessage(raw: RawMessage): Message {
  return {
    messageId: raw.messageId,
    ...(raw.contextId ? { contextId: raw.contextId } : {}),
    ...(raw.taskId ? { taskId: raw.taskId } : {}),
    role: ROLES[raw.role],
    parts: raw.parts.map((part, index) => readPart(part, `params.message.parts[${index}]`)),
    ...(raw.metadata ? { metadata: raw.metadata } : {}),
    ...(raw.extensions ? { extensions: raw.extensions } : {}),
    ...(raw.referenceTaskIds ? { referenceTaskIds: raw.referenceTaskIds } : {}),
  }
}

const ROLES: Readonly<Record<RawMessage['role'], Role>> = {
  ROLE_USER: 'ROLE_USER',
  ROLE_AGENT: 'ROLE_AGENT',
  user: 'ROLE_USER',
  agent: 'ROLE_AGENT',
}

/** Matches every spelling of the push-notification config, so that no secret in it reaches an agent. */
const PUSH_CONFIG = /push_?notification_?config/i

function withoutCredentials(raw: RawSend): RawSend {
  const { configuration } = raw.params
  if (!configuration || !Object.keys(configuration).some((key) => PUSH_CONFIG.test(key))) return raw
  const cleaned: [string, unknown][] = []
  for (const [key, value] of Object.entries(configuration)) {
    if (!PUSH_CONFIG.test(key)) cleaned.push([key, value])
    else if (isJsonObject(value)) cleaned.push([key, publicPushConfig(value)])
  }
  return { ...raw, params: { ...raw.params, configuration: Object.fromEntries(cleaned) } }
}

/** Keeps only the ids. The URL may be a secret too: who knows it can call the receiver. */
function publicPushConfig({ id, taskId }: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries({ id, taskId }).filter(([, value]) => typeof value === 'string'))
}
