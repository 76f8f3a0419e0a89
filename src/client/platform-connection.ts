/**
 * The connection from a bridge to its platform, over a few kept sockets. When a call fails with a retryable error, all
 * calls back off: for the time that the platform asks for, or exponentially up to a minute; `onBackoff` reports why.
 * A dead socket is noticed by the timeout of the call on it. Contract: every call may be repeated.
 */

import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { backoffMs } from '../backoff.ts'
import type { Clock } from '../clock.ts'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { sleep } from '../wait.ts'
import { failureFromAnswer, platformUnreachable } from './platform-failure.ts'

const BACKOFF_MS = 500
const BACKOFF_MS_MAX = 60_000
/** The longest `Retry-After` that is honoured; a longer one is cut to this. */
const RETRY_AFTER_MS_MAX = 600_000
/** The timeout of a call after `beginClosing`. */
const CLOSING_CALL_MS = 4_000
/** Fits a lease with the largest message as JSON; a larger answer fails with `too_large`. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

export interface PlatformConnectionOptions {
  readonly url: string
  /** Called before each call, so that a renewed token is used at once. */
  readonly token: () => string
  readonly clock: Clock
  /** Called when the connection starts to back off, with the reason; undefined = it works again. */
  readonly onBackoff: (error: MoleculeError | undefined, backoffMs: number) => void
  /** From 0 to 1: jitter, so that a thousand bridges do not reconnect at the same moment. */
  readonly random?: () => number
}

export interface PlatformCall {
  readonly body: unknown
  readonly timeoutMs: number
  /** How long the call may wait during a backoff; unset = until the connection works again. */
  readonly maxWaitMs?: number
  /**
   * Makes a refused token final, for the first contact. Later a refused token is retried, because it may be renewed.
   */
  readonly strict?: boolean
}

/** Contract: `post` waits for the end of a backoff and then tries once. Every failure is a MoleculeError. */
export interface PlatformConnection {
  post<T>(path: string, call: PlatformCall, signal?: AbortSignal): Promise<T>
  /** Starts a backoff for an error that an immediate retry would repeat. */
  backoff(error: MoleculeError): void
  /** From now on no call waits for the end of a backoff. */
  beginClosing(): void
  close(): void
}

export function createPlatformConnection(options: PlatformConnectionOptions): PlatformConnection {
  const { clock, onBackoff, random = Math.random } = options
  const secure = new URL(options.url).protocol === 'https:'
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxFreeSockets: 4 })
  const closing = new AbortController()
  let failures = 0
  let backoffUntilMs = 0

  const backoff = (error: MoleculeError) => {
    // Calls in flight at the same time fail together and count as one failure.
    if (clock.monotonicMs() < backoffUntilMs) return
    failures += 1
    const asked = error.details['retryAfterMs']
    const ownMs = backoffMs(failures - 1, BACKOFF_MS, BACKOFF_MS_MAX) * (0.5 + random() / 2)
    const waitMs = Math.round(typeof asked === 'number' ? Math.min(asked, RETRY_AFTER_MS_MAX) : ownMs)
    backoffUntilMs = clock.monotonicMs() + waitMs
    onBackoff(error, waitMs)
  }
  const limited = (call: PlatformCall): PlatformCall =>
    closing.signal.aborted ? { ...call, timeoutMs: Math.min(call.timeoutMs, CLOSING_CALL_MS) } : call
  const recordSuccess = () => {
    if (failures > 0) onBackoff(undefined, 0)
    failures = 0
    backoffUntilMs = 0
  }
  const wait = async (maxWaitMs: number | undefined, signal: AbortSignal | undefined) => {
    const leftMs = () => backoffUntilMs - clock.monotonicMs()
    if (leftMs() > 0) {
      const ended = signal === undefined ? closing.signal : AbortSignal.any([closing.signal, signal])
      if (maxWaitMs !== undefined) {
        if (maxWaitMs > 0) await sleep(clock, Math.min(leftMs(), maxWaitMs), ended)
        if (leftMs() > 0 && !closing.signal.aborted) throw backoffError(options.url)
      }
      while (leftMs() > 0 && !ended.aborted) await sleep(clock, leftMs(), ended)
    }
    if (signal?.aborted) throw new MoleculeError('canceled', 'the call was cancelled')
  }
  return {
    backoff,
    async post<T>(path: string, call: PlatformCall, signal?: AbortSignal): Promise<T> {
      await wait(call.maxWaitMs, signal)
      try {
        const token = options.token()
        const { answer, text } = await postWithReconnect(
          { url: options.url + path, token, agent, call: limited(call) },
          signal,
        )
        if (!answer.ok) throw failureFromAnswer(answer, text)
        const value = JSON.parse(text) as T
        recordSuccess()
        return value
      } catch (thrown) {
        if (signal?.aborted) throw new MoleculeError('canceled', 'the call was cancelled', { cause: thrown })
        // After a sleep of the machine all kept sockets are dead, so a timeout closes all of them.
        if (thrown instanceof AnswerTimeout) agent.destroy()
        const error = toConnectionError(thrown, options.url, call)
        if (error.retryable) backoff(error)
        throw error
      }
    },
    beginClosing: () => closing.abort(),
    close: () => agent.destroy(),
  }
}

class AnswerTimeout extends Error {}

const backoffError = (url: string): MoleculeError =>
  new MoleculeError('timeout', `the platform at ${url} cannot be reached at the moment`, { retryable: true })

/** Decides `retryable`: a token may be renewed, and an answer without our request id comes from a proxy. */
function toConnectionError(thrown: unknown, url: string, { strict = false }: PlatformCall): MoleculeError {
  if (!(thrown instanceof MoleculeError)) {
    return thrown instanceof SyntaxError
      ? new MoleculeError('timeout', `the answer of ${url} is not JSON`, { retryable: true })
      : platformUnreachable(url, thrown, thrown instanceof AnswerTimeout)
  }
  const status = Number(thrown.details['status'])
  const mayPass = status >= 500 || (status === 401 && !strict) || thrown.details['requestId'] === null
  if (thrown.retryable || !mayPass) return thrown
  return new MoleculeError(thrown.code, thrown.message, { retryable: true, cause: thrown, details: thrown.details })
}

interface PostOptions {
  readonly url: string
  readonly token: string
  readonly agent: HttpAgent | HttpsAgent
  readonly call: PlatformCall
}

async function postWithReconnect(
  exchanged: PostOptions,
  signal?: AbortSignal,
): Promise<{ answer: Response; text: string }> {
  try {
    return await postOnce(exchanged, signal)
  } catch (thrown) {
    // The platform closed a kept socket just as it was reused. It did not read the request, so send it again.
    if (!(thrown instanceof ConnectionReset)) throw thrown
    return await postOnce(exchanged, signal)
  }
}

class ConnectionReset extends Error {}

function postOnce({ url, token, agent, call }: PostOptions, signal?: AbortSignal) {
  const text = JSON.stringify(call.body)
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  }
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise<{ answer: Response; text: string }>((resolve, reject) => {
    const outgoing = send(url, { method: 'POST', agent, headers, signal })
    const limit = setTimeout(() => outgoing.destroy(new AnswerTimeout('no answer in time')), call.timeoutMs)
    const fail = (error: Error) => {
      clearTimeout(limit)
      const wasReset = outgoing.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
      reject(wasReset ? new ConnectionReset(error.message, { cause: error }) : error)
    }
    outgoing.on('error', fail)
    outgoing.on('response', (incoming) => {
      readBody(incoming).then((whole) => {
        clearTimeout(limit)
        resolve({ answer: toResponse(incoming), text: whole })
      }, fail)
    })
    outgoing.end(text)
  })
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX)
      throw new MoleculeError('too_large', 'the answer of the platform is larger than 64 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The form that `failureFromAnswer` reads. */
function toResponse({ statusCode = 0, headers }: IncomingMessage): Response {
  const kept = ['retry-after', 'x-request-id'].flatMap((name): [string, string][] => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Response(null, { status: statusCode, headers: kept })
}

/** Retries until an answer, a final error, or an abort of the signal. The backoff of `post` paces it. */
export async function retryUntilAnswered<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      if (!error.retryable || signal.aborted) throw error
    }
  }
}
