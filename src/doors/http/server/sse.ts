/**
 * Server-sent events on Node's response. A reader is written to only as fast as it reads: the next event is taken from
 * its source when the socket has drained, so a slow client costs one event of memory and not a queue of them. One that
 * takes too little for too long is cut off; it comes back with the id of the last event it saw.
 */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../clock.ts'
import { type HttpExchange, REQUEST_ID_HEADER } from './answer.ts'

export interface SseLimits {
  /** A comment is sent this often, so that proxies do not take a quiet stream for a dead one. */
  readonly keepAliveMs: number
  /** No more than this is handed to a socket at once. */
  readonly unsentBytesMax: number
  /** A socket that has not sent that within this time is closed: so an event of any size can be had, if slowly. */
  readonly unsentMs: number
}

export const SSE_LIMITS: SseLimits = { keepAliveMs: 15_000, unsentBytesMax: 1024 * 1024, unsentMs: 30_000 }

/** Below this a text cannot be larger than any sensible limit, and need not be looked at as bytes. */
const SMALL_CHARACTERS_MAX = 16_384

/** A first event that comes within this time goes out with the head, in one packet; a quiet stream begins without. */
const HEAD_MS_MAX = 10

export interface SseEvent {
  /** What the reader sends as `Last-Event-ID` to go on after this event. */
  readonly id: string
  /** JSON in one line. */
  readonly data: string
}

export interface SseOptions {
  readonly clock: Clock
  readonly limits: SseLimits
}

/** Writes all events and ends the answer. What the source throws is thrown; the answer is then cut off. */
export async function writeEvents(
  { response, requestId }: HttpExchange,
  events: AsyncIterable<SseEvent>,
  { clock, limits }: SseOptions,
): Promise<void> {
  if (response.destroyed) return
  response.writeHead(200, {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    'X-Content-Type-Options': 'nosniff',
    [REQUEST_ID_HEADER]: requestId,
  })
  const stopWaiting = clock.after(HEAD_MS_MAX, () => response.flushHeaders())
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
    stopWaiting()
    stopKeepingAlive()
  }
}

function keepAlive(response: ServerResponse, clock: Clock, everyMs: number): () => void {
  let cancel: () => void = () => undefined
  const arm = () => {
    cancel = clock.after(everyMs, () => {
      // A reader with something unsent needs no more of it.
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

/** Resolves when the socket has sent everything, or is gone. */
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
