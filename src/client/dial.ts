/**
 * One HTTP exchange with an address that `outbound.ts` has checked: no redirects, no shared connections, no proxy, and
 * a limit on every wait and on the size of the answer.
 */
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { MoleculeError } from '../errors.ts'

export interface DialOptions {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  readonly lookup: LookupFunction
  readonly headersMs: number
  readonly bytesMax: number
}

export interface OutboundResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Streams the body. Throws `too_large`, `timeout` or `canceled`. May be read once. */
  chunks(): AsyncIterable<Buffer>
  text(): Promise<string>
  /** Call it if the body is not read: an unread body holds its connection. */
  discard(): void
}

const CONNECT_MS = 10_000

export async function dial(dialing: DialOptions, signal: AbortSignal): Promise<OutboundResponse> {
  const failure = (cause: unknown) => dialFailure(cause, dialing.url, signal)
  try {
    signal.throwIfAborted()
    const incoming = await waitForHeaders(dialing, signal)
    return toOutboundResponse(incoming, dialing.bytesMax, failure)
  } catch (cause) {
    throw failure(cause)
  }
}

function waitForHeaders(dialing: DialOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { url, method, headers, body, lookup, headersMs } = dialing
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  // No agent: a kept connection would outlive the address check, and an agent may use a proxy.
  const options = { method, headers: { ...headers, ...length }, lookup, agent: false, signal } as const
  return new Promise((resolve, reject) => {
    const outgoing = send(url, options)
    const tooLate = (what: string, limitMs: number) => () =>
      outgoing.destroy(new DialTimeout(`${what} within ${limitMs / 1000} s`))
    const connecting = setTimeout(tooLate('did not accept a connection', CONNECT_MS), CONNECT_MS)
    const waiting = setTimeout(tooLate('did not answer', headersMs), headersMs)
    const stop = () => {
      clearTimeout(connecting)
      clearTimeout(waiting)
    }
    outgoing.once('socket', (socket) => {
      const connected = url.protocol === 'https:' ? 'secureConnect' : 'connect'
      socket.once(connected, () => clearTimeout(connecting))
    })
    outgoing.once('response', (incoming) => {
      stop()
      resolve(incoming)
    })
    outgoing.once('error', (error) => {
      stop()
      reject(error)
    })
    outgoing.end(body)
  })
}

function toOutboundResponse(
  incoming: IncomingMessage,
  bytesMax: number,
  failure: (cause: unknown) => MoleculeError,
): OutboundResponse {
  async function* chunks(): AsyncIterable<Buffer> {
    let bytes = 0
    try {
      for await (const chunk of incoming as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > bytesMax) throw tooLarge(bytesMax)
        yield chunk
      }
    } catch (cause) {
      throw failure(cause)
    }
  }
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    chunks,
    async text() {
      const all: Buffer[] = []
      for await (const chunk of chunks()) all.push(chunk)
      return Buffer.concat(all).toString('utf8')
    },
    discard: () => void incoming.destroy(),
  }
}

class DialTimeout extends Error {}

function tooLarge(limitBytes: number): MoleculeError {
  const message = `the answer is larger than ${limitBytes} bytes`
  return new MoleculeError('too_large', message, { details: { limitBytes } })
}

/**
 * The error for a missing or partial answer. `retryable` says that a retry may help; the caller knows if it is safe.
 */
function dialFailure(cause: unknown, url: URL, signal: AbortSignal): MoleculeError {
  if (cause instanceof MoleculeError) return cause
  if (cause instanceof DialTimeout) {
    return new MoleculeError('timeout', `${url.origin} ${cause.message}`, { retryable: true, cause })
  }
  if (signal.aborted) {
    const late = (signal.reason as Error | undefined)?.name === 'TimeoutError'
    return late
      ? new MoleculeError('timeout', `${url.origin} did not answer in time`, { retryable: true, cause })
      : new MoleculeError('canceled', 'the request was cancelled', { cause })
  }
  const code = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message
  // `unreachable` tells a connection that failed from an answer that was late.
  const details = { unreachable: code }
  return new MoleculeError('timeout', `${url.origin} cannot be reached (${code})`, { retryable: true, cause, details })
}
