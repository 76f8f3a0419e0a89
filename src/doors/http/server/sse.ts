/**
 * Server-sent events on Node's response. The next event is taken from its source only after the socket has drained, so
 * a slow client costs the memory of one event and no queue. A client that reads too slowly for too long is disconnected;
 * it reconnects with the id of the last event it saw.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../clock.ts'
import { type HttpExchange, REQUEST_ID_HEADER } from './answer.ts'

export interface SseLimits {
  /** A comment is sent this often, because proxies close a stream that is silent for long. */
  readonly keepAliveMs: number
  /** The most that is written to a socket before it must drain. */
  readonly unsentBytesMax: number
  /** A socket that has not drained within this time is closed. The limit is per write, so even a huge event arrives. */
  readonly unsentMs: number
}

export const SSE_LIMITS: SseLimits = { keepAliveMs: 15_000, unsentBytesMax: 1024 * 1024, unsentMs: 30_000 }

/** A text up to this length is below `unsentBytesMax` in any encoding, so it is written without a copy to bytes. */
const SMALL_CHARACTERS_MAX = 16_384

/** The headers wait this long for a first event, to leave in one packet with it; then they are sent alone. */
const HEAD_MS_MAX = 10

export interface SseEvent {
  /** The reader sends it as `Last-Event-ID` to go on after this event. */
  readonly id: string
  /** JSON in one line. */
  readonly data: string
}

export interface SseOptions {
  readonly clock: Clock
  readonly limits: SseLimits
}

/** Writes all events and ends the answer. When the source throws, the connection is closed and the error rethrown. */
export async function writeEvents(
  { response, requestId }: HttpExchange,
  events: AsyncIterable<SseEvent>,
  { clock, limits }: SseOptions,
): Promise<void> {
  if (response.destroyed) return
  response.writeHead(200, sseHeaders(requestId))
  const cancelFlush = clock.after(HEAD_MS_MAX, () => response.flushHeaders())
  const stopKeepingAlive = keepAlive(response, clock, limits.keepAliveMs)
  try {
    for await (const { id, data } of events) {
      await write(response, `id: ${id}\ndata: ${data}\n\n`, { clock, limits })
      if (response.destroyed) return
    }
    response.end()
  } catch (error) {
    response.destroy()
    throw error
  } finally {
    cancelFlush()
    stopKeepingAlive()
  }
}

/** A stream that cannot begin: one event with the reason, and the end. It has no id, because there is nothing to resume. */
export function writeOnlyEvent({ response, requestId }: HttpExchange, data: unknown): void {
  if (response.destroyed) return
  response.writeHead(200, sseHeaders(requestId)).end(`data: ${JSON.stringify(data)}\n\n`)
}

const sseHeaders = (requestId: string) => ({
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
  [REQUEST_ID_HEADER]: requestId,
})

function keepAlive(response: ServerResponse, clock: Clock, everyMs: number): () => void {
  let cancel: () => void = () => undefined
  const arm = () => {
    cancel = clock.after(everyMs, () => {
      // Not to a reader that is behind: it would only add to what is unsent.
      if (!response.destroyed && !response.writableNeedDrain) response.write(': keep-alive\n\n')
      arm()
    })
  }
  arm()
  return () => cancel()
}

async function write(response: ServerResponse, text: string, options: SseOptions): Promise<void> {
  if (text.length <= SMALL_CHARACTERS_MAX) {
    if (!response.write(text)) await drained(response, options)
    return
  }
  const bytes = Buffer.from(text)
  const { unsentBytesMax } = options.limits
  for (let start = 0; start < bytes.length && !response.destroyed; start += unsentBytesMax) {
    if (!response.write(bytes.subarray(start, start + unsentBytesMax))) await drained(response, options)
  }
}

/** Resolves when the socket has sent everything, or is closed. */
function drained(response: ServerResponse, { clock, limits }: SseOptions): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve()
    const end = () => {
      cancel()
      response.off('drain', end).off('close', end)
      resolve()
    }
    const cancel = clock.after(limits.unsentMs, () => response.destroy())
    response.once('drain', end).once('close', end)
  })
}
