/**
 * A small client of remote A2A agents, 1.0 and 0.3 alike: what its card says decides. Everything in and out is in our
 * words (1.0). Nothing is retried here and nothing remembered but the card, for a while. The URL is an admin's word, so
 * it may be private (`trusted`); credentials go to the origin that the card names and are never part of an error.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task } from '../protocol/a2a.ts'
import { JSON_RPC_CODES } from '../protocol/json-rpc.ts'
import { messageToV03 } from '../protocol/v03.ts'
import { type AgentInterface, cardUrl, readCard } from './agent-card.ts'
import type { Answer } from './dial.ts'
import type { Outbound } from './outbound.ts'
import { readEvent, readTask } from './peer-words.ts'
import { readSse } from './sse.ts'

export interface A2aClientOptions {
  /** Of the card, or the base that the card lies under. */
  readonly url: string
  readonly outbound: Outbound
  /** Asked for each request, so that a renewed token is used. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

export interface Outgoing {
  readonly message: Message
  /** The trace that the message belongs to, for the other side to go on with. */
  readonly traceparent?: string | undefined
}

export interface A2aClient {
  /** The card's choice of interface; fetched once and then again when it is older than five minutes. */
  interface(signal?: AbortSignal): Promise<AgentInterface>
  /** Sends and gets the first answer: a Task, as early as the agent gives one, or a bare Message. */
  send(outgoing: Outgoing, signal?: AbortSignal): Promise<StreamResponse>
  stream(outgoing: Outgoing, signal?: AbortSignal): AsyncIterable<StreamResponse>
  get(taskId: string, signal?: AbortSignal): Promise<Task>
  subscribe(taskId: string, signal?: AbortSignal): AsyncIterable<StreamResponse>
  cancel(taskId: string, signal?: AbortSignal): Promise<Task>
}

const CARD_MS_MAX = 5 * 60_000
/** An agent may think before it answers; a stream's head comes at once, a blocking answer does not. */
const ANSWER_HEAD_MS = 120_000
const CALL_MS = 120_000
const CARD_MS = 15_000

export function createA2aClient(options: A2aClientOptions): A2aClient {
  const peer = createPeer(options)
  return {
    interface: peer.interface,
    async send(outgoing, signal) {
      return readEvent(await peer.call({ method: 'send', ...sending(outgoing) }, signal))
    },
    stream: (outgoing, signal) => peer.stream({ method: 'stream', ...sending(outgoing) }, signal),
    async get(taskId, signal) {
      return readTask(await peer.call({ method: 'get', ...naming(taskId) }, signal))
    },
    subscribe: (taskId, signal) => peer.stream({ method: 'subscribe', ...naming(taskId) }, signal),
    async cancel(taskId, signal) {
      return readTask(await peer.call({ method: 'cancel', ...naming(taskId) }, signal))
    },
  }
}

type Version = AgentInterface['version']

const METHODS = {
  send: { '1.0': 'SendMessage', '0.3': 'message/send' },
  stream: { '1.0': 'SendStreamingMessage', '0.3': 'message/stream' },
  get: { '1.0': 'GetTask', '0.3': 'tasks/get' },
  subscribe: { '1.0': 'SubscribeToTask', '0.3': 'tasks/resubscribe' },
  cancel: { '1.0': 'CancelTask', '0.3': 'tasks/cancel' },
} as const satisfies Record<string, Record<Version, string>>

type MethodName = keyof typeof METHODS

const naming = (taskId: string) => ({ params: () => ({ id: taskId }) })

const sending = ({ message, traceparent }: Outgoing) => ({
  extensions: message.extensions,
  traceparent,
  params: (version: Version) =>
    version === '1.0'
      ? { message, configuration: { returnImmediately: true } }
      : { message: messageToV03(message), configuration: { blocking: false } },
})

interface Peer {
  interface(signal?: AbortSignal): Promise<AgentInterface>
  call(asking: Asking, signal?: AbortSignal): Promise<unknown>
  stream(asking: Asking, signal?: AbortSignal): AsyncIterable<StreamResponse>
}

function createPeer({ url, outbound, headers }: A2aClientOptions): Peer {
  let known: { readonly chosen: AgentInterface; readonly atMs: number } | undefined
  const find = async (signal?: AbortSignal): Promise<AgentInterface> => {
    if (known !== undefined && performance.now() - known.atMs < CARD_MS_MAX) return known.chosen
    const foundAt = cardUrl(url)
    const asked = { ...(await headers()), Accept: 'application/json', 'A2A-Version': '1.0' }
    const answer = await outbound.send({ url: foundAt, headers: asked, trusted: true, totalMs: CARD_MS }, signal)
    const card = parse(await okText(answer, foundAt))
    known = { chosen: readCard(card, foundAt), atMs: performance.now() }
    return known.chosen
  }
  const post = async (asking: Asking, accept: string, signal?: AbortSignal): Promise<Answer> => {
    const { method, params, extensions, traceparent } = asking
    const { url: to, version, tenant } = await find(signal)
    const given = tenant === undefined ? params(version) : { tenant, ...params(version) }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: METHODS[method][version], params: given })
    const wanted = {
      ...(extensions !== undefined && { [EXTENSION_HEADERS[version]]: extensions.join(', ') }),
      ...(traceparent !== undefined && { traceparent }),
    }
    const words = { 'Content-Type': 'application/json', Accept: accept, 'A2A-Version': version, ...wanted }
    const sent = { url: to, method: 'POST', body, trusted: true, headersMs: ANSWER_HEAD_MS } as const
    const limit = accept === JSON_TYPE ? { totalMs: CALL_MS } : {}
    return await outbound.send({ ...sent, ...limit, headers: { ...(await headers()), ...words } }, signal)
  }
  return {
    interface: find,
    async call(asking, signal) {
      const answer = await post(asking, JSON_TYPE, signal)
      return resultOf(parse(await okText(answer, url)))
    },
    async *stream(asking, signal) {
      const answer = await post(asking, SSE_TYPE, signal)
      if (!String(answer.headers['content-type']).startsWith(SSE_TYPE)) {
        // A refusal, or an agent that answers a stream with its one event.
        yield readEvent(resultOf(parse(await okText(answer, url))))
        return
      }
      for await (const data of readSse(answer.chunks())) yield readEvent(resultOf(parse(data)))
    },
  }
}

const EXTENSION_HEADERS = { '1.0': 'A2A-Extensions', '0.3': 'X-A2A-Extensions' } as const
const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'

interface Asking {
  readonly method: MethodName
  readonly params: (version: Version) => object
  /** Of the message: an agent uses an extension only where the header names it too. */
  readonly extensions?: readonly string[] | undefined
  readonly traceparent?: string | undefined
}

const REASON_CHARACTERS_MAX = 300
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** The body of a success; JSON-RPC errors come with any status, so a body that holds one counts as read. */
async function okText(answer: Answer, url: string): Promise<string> {
  const body = await answer.text()
  const { status } = answer
  if ((status >= 200 && status < 300) || isRpcFailure(body)) return body
  if (status === 401 || status === 403) {
    throw new MoleculeError('auth_failed', `the remote agent refuses our credentials (HTTP ${status})`)
  }
  const said = body.slice(0, REASON_CHARACTERS_MAX)
  const message = `the remote agent at ${new URL(url).origin} answered HTTP ${status}`
  throw new MoleculeError(status === 429 ? 'rate_limited' : 'agent_failed', message, {
    retryable: RETRYABLE.has(status),
    details: { status, said },
  })
}

function isRpcFailure(body: string): boolean {
  try {
    return (JSON.parse(body) as { error?: { code?: unknown } } | null)?.error?.code !== undefined
  } catch {
    return false
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new MoleculeError('agent_failed', "the remote agent's answer is not JSON", { cause })
  }
}

/** The result of a JSON-RPC answer; its error becomes ours, with the agent's own words. */
function resultOf(value: unknown): unknown {
  const { result, error } = (value ?? {}) as { result?: unknown; error?: { code?: unknown; message?: unknown } }
  if (error === undefined || error === null) return result
  const message = `the remote agent refused: ${String(error.message ?? 'without a reason').slice(0, REASON_CHARACTERS_MAX)}`
  const details = { rpcCode: error.code }
  switch (error.code) {
    case JSON_RPC_CODES.taskNotFound:
      throw new MoleculeError('not_found', message, { details })
    case JSON_RPC_CODES.unsupportedOperation:
    case JSON_RPC_CODES.methodNotFound:
    case JSON_RPC_CODES.pushNotificationNotSupported:
      throw new MoleculeError('unsupported_operation', message, { details })
    case JSON_RPC_CODES.taskNotCancelable:
      throw new MoleculeError('not_cancelable', message, { details })
    case JSON_RPC_CODES.unauthenticated:
      throw new MoleculeError('auth_failed', message, { details })
    case JSON_RPC_CODES.queueFull:
      throw new MoleculeError('rate_limited', message, { details, retryable: true })
    default:
      throw new MoleculeError('agent_failed', message, {
        details,
        retryable: error.code === JSON_RPC_CODES.internalError || error.code === JSON_RPC_CODES.storeUnavailable,
      })
  }
}
