/**
 * A small client of remote A2A agents, 1.0 and 0.3 alike: what its card says decides. Everything in and out is in our
 * words (1.0). Nothing is retried here and nothing remembered but the card, for a while. The URL is an admin's word, so
 * it may be private (`trusted`); another host that its card names is the agent's word and is judged as a stranger's.
 * Credentials go to the origin that the card names and are never part of an error.
 */
import { MoleculeError } from '../errors.ts'
import type { Message, StreamResponse, Task } from '../protocol/a2a.ts'
import { messageToV03 } from '../protocol/v03.ts'
import { type Asking, resultOf, toWire, type Version } from './a2a-wire.ts'
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

const naming = (taskId: string) => ({ taskId, params: () => ({ id: taskId }) })

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
  const ask = async (asking: Asking, accept: string, signal?: AbortSignal) => {
    const { extensions, traceparent } = asking
    const chosen = await find(signal)
    const { version } = chosen
    const wanted = {
      ...(extensions !== undefined && { [EXTENSION_HEADERS[version]]: extensions.join(', ') }),
      ...(traceparent !== undefined && { traceparent }),
    }
    const words = { 'Content-Type': JSON_TYPE, Accept: accept, 'A2A-Version': version, ...wanted }
    const trusted = new URL(chosen.url).hostname === new URL(url).hostname
    const sent = { ...toWire(asking, chosen), trusted, headersMs: ANSWER_HEAD_MS }
    const limit = accept === JSON_TYPE ? { totalMs: CALL_MS } : {}
    const answer = await outbound.send({ ...sent, ...limit, headers: { ...(await headers()), ...words } }, signal)
    return { answer, read: (body: string) => resultOf(parse(body), chosen) }
  }
  return {
    interface: find,
    async call(asking, signal) {
      const { answer, read } = await ask(asking, JSON_TYPE, signal)
      return read(await okText(answer, url))
    },
    async *stream(asking, signal) {
      const { answer, read } = await ask(asking, SSE_TYPE, signal)
      if (!String(answer.headers['content-type']).startsWith(SSE_TYPE)) {
        // A refusal, or an agent that answers a stream with its one event.
        yield readEvent(read(await okText(answer, url)))
        return
      }
      for await (const data of readSse(answer.chunks())) yield readEvent(read(data))
    },
  }
}

const EXTENSION_HEADERS = { '1.0': 'A2A-Extensions', '0.3': 'X-A2A-Extensions' } as const
const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'

const REASON_CHARACTERS_MAX = 300
const RETRYABLE: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** The body of a success; A2A's own errors come with any status, so a body that holds one counts as read. */
async function okText(answer: Answer, url: string): Promise<string> {
  const body = await answer.text()
  const { status } = answer
  if ((status >= 200 && status < 300) || isPeerFailure(body)) return body
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

function isPeerFailure(body: string): boolean {
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
