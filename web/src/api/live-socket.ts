/**
 * The one WebSocket of the page. It reconnects by itself. After each connect it sends the subscription again, with the
 * numbers that were seen, so that no event is missed and none comes twice.
 */

import { backoffMs } from '../../../src/backoff.ts'
import { REVOKED_CLOSE_CODE } from '../../../src/client/live-socket.ts'
import type { LiveMessage, SentSubscription } from './log-subscriptions.ts'

export type LiveState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'online' }
  /** `sinceMs` is the time of the last sign of life, `retryMs` the time of the next try. */
  | { readonly kind: 'offline'; readonly sinceMs: number; readonly retryMs: number }

export interface LiveSocketOptions {
  /** The body of the subscription, called after each connect. */
  readonly subscription: () => SentSubscription
  readonly onMessage: (message: LiveMessage) => void
  readonly onState: (state: LiveState) => void
  /** The session has ended: there will be no further try. */
  readonly onLoggedOut: () => void
}

export interface LiveSocket {
  /** A further subscription; without a connection nothing is sent. */
  send(subscription: SentSubscription): void
  /** Closes it for good. */
  close(): void
}

const BACKOFF_MS = 500
const BACKOFF_MS_MAX = 8000

/** The wait before the next try, with jitter so that many pages do not return at the same moment. */
const waitOf = (failures: number, random = Math.random()): number =>
  Math.round(backoffMs(failures, BACKOFF_MS, BACKOFF_MS_MAX) * (0.75 + random / 4))

export function openLiveSocket(options: LiveSocketOptions): LiveSocket {
  let socket: WebSocket | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let closed = false
  let lastSignMs = Date.now()
  const connect = () => {
    clearTimeout(timer)
    timer = undefined
    const current = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/ws`, 'molecule')
    socket = current
    current.onopen = () => {
      failures = 0
      current.send(JSON.stringify(options.subscription()))
      options.onState({ kind: 'online' })
    }
    current.onmessage = ({ data }) => {
      lastSignMs = Date.now()
      if (!closed) options.onMessage(JSON.parse(String(data)) as LiveMessage)
    }
    current.onclose = ({ code }) => {
      if (closed) return
      if (code === REVOKED_CLOSE_CODE) return options.onLoggedOut()
      const waitMs = waitOf(failures++)
      options.onState({ kind: 'offline', sinceMs: lastSignMs, retryMs: Date.now() + waitMs })
      timer = setTimeout(connect, waitMs)
    }
  }
  // A laptop that wakes up, or a network that returns, does not wait for the end of the backoff.
  const hurry = () => {
    if (timer !== undefined && !document.hidden) connect()
  }
  addEventListener('online', hurry)
  document.addEventListener('visibilitychange', hurry)
  options.onState({ kind: 'connecting' })
  connect()
  return {
    send(subscription) {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(subscription))
    },
    close() {
      closed = true
      clearTimeout(timer)
      removeEventListener('online', hurry)
      document.removeEventListener('visibilitychange', hurry)
      socket?.close()
    },
  }
}
