/**
 * A client of remote A2A agents, 1.0 and 0.3; the agent's card decides which. Callers see only 1.0 types. It does not
 * retry, and caches only the card, for five minutes. An admin gave the URL, so its host may be private (`trusted`); if
 * the card names another host, that host must be public.
 * Invariant: credentials go only to the origin (scheme, host, port) of the URL that the admin gave, never to another
 * one that the card or a redirect names, and never into an error.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task } from '../protocol/a2a.ts'
import type { ProtocolVersion } from '../protocol/envelope.ts'
import type { TraceContext } from '../protocol/trace-context.ts'
import { messageToV03 } from '../protocol/v03/v03.ts'
import { REASON_CHARACTERS_MAX, type RemoteAgentCall, resultOf, toWireRequest } from './a2a-wire.ts'
import { type AgentInterface, cardUrl, readCard } from './agent-card.ts'
import type { OutboundResponse } from './dial.ts'
import type { Outbound } from './outbound.ts'
import { readSse } from './read-sse.ts'
import { readRemoteEvent, readRemoteTask } from './remote-agent-events.ts'

export interface A2aClientOptions {
  /** The URL of the card, or the base URL above it. */
  readonly url: string
  readonly outbound: Outbound
  /** Called for each request, so that a renewed token is used. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

export interface A2aSendInput {
  readonly message: Message
  /** The trace of the message, which the remote agent continues. */
  readonly trace?: TraceContext | undefined
}

export interface A2aClient {
  /** The interface chosen from the card, which is fetched again when it is older than five minutes. */
  interface(signal?: AbortSignal): Promise<AgentInterface>
  /** Sends without blocking. The answer is a Task or a bare Message. */
  send(outgoing: A2aSendInput, signal?: AbortSignal): Promise<StreamResponse>
  stream(outgoing: A2aSendInput, signal?: AbortSignal): AsyncIterable<StreamResponse>
  get(taskId: string, signal?: AbortSignal): Promise<Task>
  subscribe(taskId: string, signal?: AbortSignal): AsyncIterable<StreamResponse>
  cancel(taskId: string, signal?: AbortSignal): Promise<Task>
}

const CARD_CACHE_MS = 5 * 60_000
/** An agent may work before it answers a call; only a stream sends its headers at once. */
const ANSWER_HEADERS_MS = 120_000
const CALL_MS = 120_000
const CARD_FETCH_MS = 15_000

export function createA2aClient(options: A2aClientOptions): A2aClient {
  const transport = createAgentTransport(options)
  return {
    interface: transport.interface,
    async send(outgoing, signal) {
      return readRemoteEvent(await transport.call({ method: 'send', ...sendCall(outgoing) }, signal))
    },
    stream: (outgoing, signal) => transport.stream({ method: 'stream', ...sendCall(outgoing) }, signal),
    async get(taskId, signal) {
      return readRemoteTask(await transport.call({ method: 'get', ...taskCall(taskId) }, signal))
    },
    subscribe: (taskId, signal) => transport.stream({ method: 'subscribe', ...taskCall(taskId) }, signal),
    async cancel(taskId, signal) {
      return readRemoteTask(await transport.call({ method: 'cancel', ...taskCall(taskId) }, signal))
    },
  }
}

const taskCall = (taskId: string) => ({ taskId, params: () => ({ id: taskId }) })

const sendCall = ({ message, trace }: A2aSendInput) => ({
  extensions: message.extensions,
  trace,
  params: (version: ProtocolVersion) =>
    version === '1.0'
      ? { message, configuration: { returnImmediately: true } }
      : { message: messageToV03(message), configuration: { blocking: false } },
})

interface AgentTransport {
  interface(signal?: AbortSignal): Promise<AgentInterface>
  call(agentCall: RemoteAgentCall, signal?: AbortSignal): Promise<unknown>
  stream(agentCall: RemoteAgentCall, signal?: AbortSignal): AsyncIterable<StreamResponse>
}

function createAgentTransport({ url, outbound, headers }: A2aClientOptions): AgentTransport {
  let cached: { readonly chosen: AgentInterface; readonly atMs: number } | undefined
  const find = async (signal?: AbortSignal): Promise<AgentInterface> => {
    if (cached !== undefined && performance.now() - cached.atMs < CARD_CACHE_MS) return cached.chosen
    const foundAt = cardUrl(url)
    const cardHeaders = { ...(await headers()), Accept: 'application/json', 'A2A-Version': '1.0' }
    const request = { url: foundAt, headers: cardHeaders, trusted: true, totalMs: CARD_FETCH_MS }
    const answer = await outbound.send(request, signal)
    const card = parse(await successText(answer, foundAt))
    cached = { chosen: readCard(card, foundAt), atMs: performance.now() }
    return cached.chosen
  }
  const ask = async (agentCall: RemoteAgentCall, accept: string, signal?: AbortSignal) => {
    const { extensions, trace } = agentCall
    const chosen = await find(signal)
    const { version } = chosen
    const optional = {
      ...(extensions !== undefined && { [EXTENSION_HEADERS[version]]: extensions.join(', ') }),
      ...trace,
    }
    const callHeaders = { 'Content-Type': JSON_TYPE, Accept: accept, 'A2A-Version': version, ...optional }
    const trusted = new URL(chosen.url).hostname === new URL(url).hostname
    const sent = { ...toWireRequest(agentCall, chosen), trusted, headersMs: ANSWER_HEADERS_MS }
    const limit = accept === JSON_TYPE ? { totalMs: CALL_MS } : {}
    const credentials = await headers()
    const isOwnOrigin = new URL(chosen.url).origin === new URL(url).origin
    const allHeaders = isOwnOrigin ? { ...credentials, ...callHeaders } : callHeaders
    const answer = await outbound.send({ ...sent, ...limit, headers: allHeaders }, signal)
    const explain = (thrown: unknown) =>
      isOwnOrigin || Object.keys(credentials).length === 0 ? thrown : withheldCredentials(thrown, url, chosen.url)
    const read = (body: string) => {
      try {
        return resultOf(parse(body), chosen)
      } catch (thrown) {
        throw explain(thrown)
      }
    }
    const successBody = () => successText(answer, url).catch((thrown: unknown) => Promise.reject(explain(thrown)))
    return { answer, read, successBody }
  }
  return {
    interface: find,
    async call(agentCall, signal) {
      const { read, successBody } = await ask(agentCall, JSON_TYPE, signal)
      return read(await successBody())
    },
    async *stream(agentCall, signal) {
      const { answer, read, successBody } = await ask(agentCall, SSE_TYPE, signal)
      if (!String(answer.headers['content-type']).startsWith(SSE_TYPE)) {
        // The answer is a refusal, or a single event in place of a stream.
        yield readRemoteEvent(read(await successBody()))
        return
      }
      for await (const data of readSse(answer.chunks())) yield readRemoteEvent(read(data))
    },
  }
}

/** A refusal of an agent that got no credentials, because its card names an origin that the admin did not. */
function withheldCredentials(thrown: unknown, given: string, called: string): unknown {
  if (!(thrown instanceof MoleculeError) || thrown.code !== 'auth_failed') return thrown
  const [own, other] = [new URL(given).origin, new URL(called).origin]
  const message = `the card of ${own} names ${other}, which gets no credentials and refused the call; set url to ${other}`
  return new MoleculeError('auth_failed', message, { cause: thrown })
}

const EXTENSION_HEADERS = { '1.0': 'A2A-Extensions', '0.3': 'X-A2A-Extensions' } as const
const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'

/**
 * More than for our own platform (platform-failure.ts): an agent behind a proxy may also answer 408, 425 or 500 for a
 * while.
 */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** The body of a success, or a body with an A2A error, which may come with any status. Throws for other failures. */
async function successText(answer: OutboundResponse, url: string): Promise<string> {
  const body = await answer.text()
  const { status } = answer
  if ((status >= 200 && status < 300) || isRemoteError(body)) return body
  if (status === 401 || status === 403) {
    throw new MoleculeError('auth_failed', `the remote agent refuses our credentials (HTTP ${status})`)
  }
  const answerStart = body.slice(0, REASON_CHARACTERS_MAX)
  const message = `the remote agent at ${new URL(url).origin} answered HTTP ${status}`
  throw new MoleculeError(status === 429 ? 'rate_limited' : 'agent_failed', message, {
    retryable: RETRYABLE_STATUSES.has(status),
    details: { status, said: answerStart },
  })
}

function isRemoteError(body: string): boolean {
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
