/**
 * The connection from a bridge to its platform: one call at a time on each of a few kept connections, and one judgement of
 * whether the platform can be reached. When a call fails in a way that may pass, the connection rests, for as long as the
 * platform asks or a little longer each time up to a minute, and says what it waits for; then calls go out again.
 * Every call may be repeated. A connection that has gone silent is noticed by the time limit of the call on it.
 */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Clock } from '../clock.ts'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { sleep } from '../wait.ts'
import { failureFromAnswer, platformUnreachable } from './platform-failure.ts'

const BACKOFF_MS = 500
const BACKOFF_MS_MAX = 60_000
/** A platform may ask for more patience than we would have by ourselves, within reason. */
const RETRY_AFTER_MS_MAX = 600_000
/** For one call of somebody who leaves. */
const CLOSING_CALL_MS = 4_000
/** A lease with the largest message, as JSON. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

export interface PlatformConnectionOptions {
  readonly url: string
  /** The token as it is now; asked for before each call, so that a renewed one is used at once. */
  readonly token: () => string
  readonly clock: Clock
  /** The connection rests, and why; undefined = it works again. */
  readonly onBackoff: (error: MoleculeError | undefined, backoffMs: number) => void
  /** From 0 to 1, so that a thousand bridges do not come back in the same moment. */
  readonly random?: () => number
}

export interface PlatformCall {
  readonly body: unknown
  readonly timeoutMs: number
  /** How long it may wait while the connection rests; unset = until it works again. */
  readonly maxWaitMs?: number
  /** A refused token ends the call, as it does at the very start; later a new one may come. */
  readonly strict?: boolean
}

/** Contract: `post` makes one try once the connection does not backoff; every failure is a MoleculeError. */
export interface PlatformConnection {
  post<T>(path: string, call: PlatformCall, signal?: AbortSignal): Promise<T>
  /** What cannot be mended by trying at once: the connection rests before the next try. */
  backoff(error: MoleculeError): void
  /** From now on nothing waits for the connection to work again. */
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
    // Calls that went out together fail together, and count as one.
    if (clock.monotonicMs() < backoffUntilMs) return
    failures += 1
    const asked = error.details['retryAfterMs']
    const own = Math.min(BACKOFF_MS * 2 ** (failures - 1), BACKOFF_MS_MAX) * (0.5 + random() / 2)
    const backoffMs = Math.round(typeof asked === 'number' ? Math.min(asked, RETRY_AFTER_MS_MAX) : own)
    backoffUntilMs = clock.monotonicMs() + backoffMs
    onBackoff(error, backoffMs)
  }
  const limited = (call: PlatformCall): PlatformCall =>
    closing.signal.aborted ? { ...call, timeoutMs: Math.min(call.timeoutMs, CLOSING_CALL_MS) } : call
  const works = () => {
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
        works()
        return value
      } catch (thrown) {
        if (signal?.aborted) throw new MoleculeError('canceled', 'the call was cancelled', { cause: thrown })
        // One that went silent is seldom the only one: after a sleep of the machine all of them are dead.
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
  new MoleculeError('timeout', `the platform at ${url} cannot be reached right now`, { retryable: true })

/** Whether trying again may help. A token may be renewed, and a proxy's page says nothing of the platform. */
function toConnectionError(thrown: unknown, url: string, { strict = false }: PlatformCall): MoleculeError {
  if (!(thrown instanceof MoleculeError)) {
    return thrown instanceof SyntaxError
      ? new MoleculeError('timeout', `${url} answered with something else than JSON`, { retryable: true })
      : platformUnreachable(url, thrown, thrown instanceof AnswerTimeout)
  }
  const status = Number(thrown.details['status'])
  const passing = status >= 500 || (status === 401 && !strict) || thrown.details['requestId'] === null
  if (thrown.retryable || !passing) return thrown
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
    // The platform closed a kept connection just when it was used again: nothing was heard there, so say it again.
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
    const outgoing = send(url, { method: 'POST', agent, headers, ...(signal && { signal }) })
    const limit = setTimeout(() => outgoing.destroy(new AnswerTimeout('no answer in time')), call.timeoutMs)
    const fail = (error: Error) => {
      clearTimeout(limit)
      const stale = outgoing.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
      reject(stale ? new ConnectionReset(error.message, { cause: error }) : error)
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
    if (bytes > ANSWER_BYTES_MAX) throw new MoleculeError('too_large', 'the answer of the platform is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** As the failures of other calls are read. */
function toResponse({ statusCode = 0, headers }: IncomingMessage): Response {
  const kept = ['retry-after', 'x-request-id'].flatMap((name): [string, string][] => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Response(null, { status: statusCode, headers: kept })
}

/** For calls that must come through: tried until answered, refused for good, or no longer wanted. */
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
