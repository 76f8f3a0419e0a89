/**
 * Socket Mode of the fake Slack: an address with a ticket for one connection, a greeting, envelopes. An envelope that is not
 * confirmed in time comes again, three times at most; while no connection stands, events are lost to the bot.
 */
import type { Server } from 'node:http'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'

const CONFIRM_MS = 3000
const RETRIES_MAX = 3

interface Envelope {
  readonly id: string
  readonly type: 'events_api' | 'interactive' | 'slash_commands'
  readonly payload: object
  retries: number
  timer?: NodeJS.Timeout
}

export interface SlackSockets {
  /** A new address for one connection. */
  open(baseUrl: string): string
  send(type: Envelope['type'], payload: object): void
  isConnected(): boolean
  /** Ends the connections without a close frame. */
  drop(): void
  /** Slack asks for a new connection, as it does after some hours. */
  refresh(): void
  /** Envelopes that wait for their confirmation. */
  unconfirmed(): number
  /** How often an envelope came again. */
  readonly repeats: number
  stop(): void
}

export function startSlackSockets(server: Server): SlackSockets {
  const sockets = new WebSocketServer({ server, path: '/link' })
  const tickets = new Set<string>()
  const live = new Set<WebSocket>()
  const waiting = new Map<string, Envelope>()
  let count = 0
  let repeats = 0
  let turn = 0

  const push = (envelope: Envelope) => {
    const open = [...live]
    // Slack spreads envelopes over the connections of an app.
    const socket = open[turn++ % Math.max(open.length, 1)]
    if (socket === undefined) return
    const { id, type, payload, retries } = envelope
    const more = type === 'events_api' ? { retry_attempt: retries, retry_reason: retries > 0 ? 'timeout' : '' } : {}
    const accepts_response_payload = type !== 'events_api'
    socket.send(JSON.stringify({ envelope_id: id, type, payload, accepts_response_payload, ...more }))
    envelope.timer = setTimeout(() => repeat(envelope), CONFIRM_MS)
  }
  const repeat = (envelope: Envelope) => {
    if (!waiting.has(envelope.id)) return
    if (envelope.retries >= RETRIES_MAX || envelope.type !== 'events_api') return void waiting.delete(envelope.id)
    envelope.retries += 1
    repeats += 1
    push(envelope)
  }
  const confirm = (data: RawData) => {
    const { envelope_id: id } = JSON.parse(String(data)) as { envelope_id: string }
    clearTimeout(waiting.get(id)?.timer)
    waiting.delete(id)
  }
  sockets.on('connection', (socket, request) => {
    const ticket = new URL(request.url ?? '', 'http://slack.test').searchParams.get('ticket') ?? ''
    if (!tickets.delete(ticket)) return socket.close(1008, 'link expired')
    socket.on('message', confirm)
    socket.on('error', () => undefined)
    socket.on('close', () => live.delete(socket))
    live.add(socket)
    socket.send(JSON.stringify({ type: 'hello', num_connections: live.size, connection_info: { app_id: 'A111' } }))
    for (const envelope of waiting.values()) {
      clearTimeout(envelope.timer)
      repeat(envelope)
    }
  })
  return {
    open(baseUrl) {
      const ticket = `ticket-${++count}`
      tickets.add(ticket)
      return `${baseUrl.replace('http:', 'ws:')}/link?ticket=${ticket}&app_id=A111`
    },
    send(type, payload) {
      if (live.size === 0) return
      const envelope: Envelope = { id: `envelope-${++count}`, type, payload, retries: 0 }
      waiting.set(envelope.id, envelope)
      push(envelope)
    },
    isConnected: () => live.size > 0,
    drop() {
      for (const socket of live) socket.terminate()
    },
    refresh() {
      for (const socket of live) socket.send(JSON.stringify({ type: 'disconnect', reason: 'refresh_requested' }))
    },
    unconfirmed: () => waiting.size,
    get repeats() {
      return repeats
    },
    stop() {
      for (const { timer } of waiting.values()) clearTimeout(timer)
      waiting.clear()
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
    },
  }
}
