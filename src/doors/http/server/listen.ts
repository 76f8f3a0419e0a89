/**
 * The life of the Node server behind the HTTP door, once it listens: take requests, refuse connections past the limit,
 * close. Closing ends all waits, lets running requests finish within a limit, and then closes every connection.
 */
import { type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { Clock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { ulid } from '../../../ids.ts'
import { sleep } from '../../../wait.ts'
import { REQUEST_ID_PREFIX } from './answer.ts'
import { errorAnswer } from './errors.ts'

/** A client cannot connect to a wildcard address; from this machine it uses loopback. */
const LOOPBACK_OF_WILDCARD: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** The URL of a listening server, for clients on this machine. */
export function urlOf(server: Server, host: string): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new MoleculeError('internal', 'the http door is not open')
  const reachable = LOOPBACK_OF_WILDCARD[host] ?? host
  return `http://${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${address.port}`
}

/**
 * Prevents unbounded memory: a client may send two hundred requests for a large answer on one connection and read none
 * (pipelining). The listener gets the next request of a connection after the answer before it is sent.
 */
export function answerOneAtATime(listener: RequestListener): RequestListener {
  const latest = new WeakMap<Socket, ServerResponse>()
  return (request, response) => {
    // Its connection was refused and has its answer.
    if (request.socket.writableEnded) return void request.resume()
    const previous = latest.get(request.socket)
    latest.set(request.socket, response)
    if (previous === undefined || previous.writableFinished || previous.destroyed) return listener(request, response)
    previous.once('close', () => listener(request, response))
  }
}

const REFUSED_MS_MAX = 1000

/** Answers a connection that is over the limit of its address, without waiting for its request. */
export function refuseConnection(socket: Socket): void {
  const message = 'your address has too many connections open; close some first'
  const error = new MoleculeError('too_many_requests', message, {
    details: { retryAfterMs: CONNECTIONS_RETRY_AFTER_MS },
  })
  const { status, headers, body } = errorAnswer(error, `${REQUEST_ID_PREFIX}${ulid()}`)
  const text = JSON.stringify(body)
  const head = { ...headers, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
  const lines = Object.entries({ ...head, Connection: 'close' }).map(([name, value]) => `${name}: ${value}`)
  socket.on('error', () => socket.destroy())
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', text].join('\r\n'))
  // Not at once: a reset would overtake the answer.
  setTimeout(() => socket.destroy(), REFUSED_MS_MAX).unref()
}

const CONNECTIONS_RETRY_AFTER_MS = 10_000

/** The responses that are not finished yet. */
export interface InFlight {
  add(response: ServerResponse): void
  /** Resolves when none is left. From now on each connection ends with its answer. */
  finish(): Promise<void>
}

export function createInFlight(): InFlight {
  const responses = new Set<ServerResponse>()
  const empty = Promise.withResolvers<void>()
  let finishing = false
  return {
    add(response) {
      responses.add(response)
      if (finishing) response.shouldKeepAlive = false
      response.once('close', () => {
        responses.delete(response)
        if (finishing && responses.size === 0) empty.resolve()
      })
    },
    finish() {
      finishing = true
      for (const response of responses) response.shouldKeepAlive = false
      if (responses.size === 0) empty.resolve()
      return empty.promise
    },
  }
}

export async function closeServer(
  server: Server,
  {
    endWaits,
    closeSockets,
    inFlight,
    clock,
    graceMs,
  }: {
    readonly endWaits: () => void
    /** Undefined before the start. The server does not know the connections that were upgraded. */
    readonly closeSockets: (() => Promise<void>) | undefined
    readonly inFlight: InFlight
    readonly clock: Clock
    readonly graceMs: number
  },
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  endWaits()
  const socketsClosed = closeSockets?.()
  const finished = new AbortController()
  await Promise.race([inFlight.finish(), sleep(clock, graceMs, finished.signal)])
  finished.abort()
  server.closeAllConnections()
  await socketsClosed
  await closed
}
