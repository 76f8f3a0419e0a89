/**
 * Requests that come on one connection without waiting for their answers (pipelining) are taken one after the other.
 * Else a client that asks two hundred times for a large answer and never reads would have all of them held in memory.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

export function answerOneAtATime(listener: RequestListener): RequestListener {
  const latest = new WeakMap<Socket, ServerResponse>()
  return (request, response) => {
    const before = latest.get(request.socket)
    latest.set(request.socket, response)
    if (before === undefined || before.writableFinished || before.destroyed) return listener(request, response)
    before.once('close', () => listener(request, response))
  }
}
