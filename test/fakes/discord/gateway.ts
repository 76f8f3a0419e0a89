/**
 * The gateway of the fake Discord: hello, identify, heartbeat, dispatch with sequence numbers, resume with replay, invalid
 * session. A session outlives its socket, so that a bot that comes back gets what it missed.
 */
import type { Server } from 'node:http'
import { type RawData, type WebSocket, WebSocketServer } from 'ws'
import type { DiscordWorld } from './world.ts'

const INTENT = {
  guildMessages: 1 << 9,
  guildReactions: 1 << 10,
  directMessages: 1 << 12,
  directReactions: 1 << 13,
  content: 1 << 15,
}
/** Short, so that tests see heartbeats; a bot that misses one is closed. */
const HEARTBEAT_MS = 5000

interface GatewaySession {
  readonly id: string
  readonly intents: number
  sequence: number
  readonly sent: { readonly op: 0; readonly s: number; readonly t: string; readonly d: unknown }[]
  socket: WebSocket | undefined
}

export interface DiscordGateway {
  /** Sends an event to the bot, or keeps it for the resume. A late event comes without its place in the order. */
  dispatch(type: string, data: object): void
  isConnected(): boolean
  /** Ends the sockets without a close frame. The bot can resume. */
  drop(): void
  /** Ends the sockets with a close code. */
  close(code: number): void
  /** Op 7: the bot must reconnect and resume. */
  requestReconnect(): void
  /** The next resume gets op 9: what was sent meanwhile is lost to the gateway. */
  forgetSessions(): void
  readonly identifies: number
  readonly resumes: number
  readonly heartbeats: number
  stop(): void
}

export function startDiscordGateway(server: Server, world: DiscordWorld): DiscordGateway {
  const sockets = new WebSocketServer({ server, path: '/gateway' })
  const sessions = new Map<string, GatewaySession>()
  const counts = { identifies: 0, resumes: 0, heartbeats: 0 }
  const live = () => [...sessions.values()].filter(({ socket }) => socket !== undefined)

  const push = (session: GatewaySession, type: string, data: unknown) => {
    const event = { op: 0, s: ++session.sequence, t: type, d: data } as const
    session.sent.push(event)
    session.socket?.send(JSON.stringify(event))
  }
  const identify = (socket: WebSocket, d: { token: string; intents: number }) => {
    counts.identifies += 1
    if (d.token !== world.token) return socket.close(4004, 'Authentication failed.')
    if ((d.intents & INTENT.content) !== 0 && !world.hasContentIntent)
      return socket.close(4014, 'Disallowed intent(s).')
    const session: GatewaySession = { id: world.snowflake(), intents: d.intents, sequence: 0, sent: [], socket }
    sessions.set(session.id, session)
    attach(socket, session)
    push(session, 'READY', readyData(world, session.id))
    push(session, 'GUILD_CREATE', guildData(world))
  }
  const resume = (socket: WebSocket, d: { token: string; session_id: string; seq: number }) => {
    const session = sessions.get(d.session_id)
    if (d.token !== world.token || session === undefined) return socket.send(JSON.stringify({ op: 9, d: false }))
    counts.resumes += 1
    attach(socket, session)
    for (const event of session.sent.filter(({ s }) => s > d.seq)) socket.send(JSON.stringify(event))
    push(session, 'RESUMED', {})
  }
  const attach = (socket: WebSocket, session: GatewaySession) => {
    session.socket = socket
    socket.on('close', () => {
      if (session.socket === socket) session.socket = undefined
    })
  }
  sockets.on('connection', (socket) => {
    socket.on('error', () => undefined)
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: HEARTBEAT_MS } }))
    socket.on('message', (raw: RawData) => {
      const { op, d } = JSON.parse(String(raw))
      if (op === 1) {
        counts.heartbeats += 1
        socket.send(JSON.stringify({ op: 11 }))
      } else if (op === 2) identify(socket, d)
      else if (op === 6) resume(socket, d)
      else if (op !== 3 && op !== 8) socket.close(4001, 'Unknown opcode.')
    })
  })
  return {
    dispatch(type, data) {
      for (const session of sessions.values()) {
        const shown = visibleData(type, data, { world, intents: session.intents })
        if (shown !== undefined) push(session, type, shown)
      }
    },
    isConnected: () => live().some(({ socket }) => socket?.readyState === 1),
    drop() {
      for (const socket of sockets.clients) socket.terminate()
    },
    close(code) {
      for (const socket of sockets.clients) socket.close(code)
    },
    requestReconnect() {
      for (const { socket } of live()) socket?.send(JSON.stringify({ op: 7, d: null }))
    },
    forgetSessions: () => sessions.clear(),
    get identifies() {
      return counts.identifies
    },
    get resumes() {
      return counts.resumes
    },
    get heartbeats() {
      return counts.heartbeats
    },
    stop() {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
    },
  }
}

/** What the intents of the bot let it see: no event of a kind that it did not ask for, no text without its intent. */
function visibleData(
  type: string,
  data: object,
  { world, intents }: { world: DiscordWorld; intents: number },
): object | undefined {
  if (type === 'MESSAGE_REACTION_ADD') {
    const needed = 'guild_id' in data ? INTENT.guildReactions : INTENT.directReactions
    return (intents & needed) === 0 ? undefined : data
  }
  if (!/^MESSAGE_(CREATE|UPDATE|DELETE)$/.test(type)) return data
  const message = data as { guild_id?: string; mentions: readonly { id: string }[]; author: { id: string } }
  const isDirect = message.guild_id === undefined
  if ((intents & (isDirect ? INTENT.directMessages : INTENT.guildMessages)) === 0) return undefined
  if (type === 'MESSAGE_DELETE') return data
  const isOwn = message.author.id === world.bot.id || message.mentions.some(({ id }) => id === world.bot.id)
  if (isDirect || isOwn || (intents & INTENT.content) !== 0) return data
  return { ...data, content: '', attachments: [], components: [], embeds: [] }
}

function readyData(world: DiscordWorld, sessionId: string) {
  return {
    v: 10,
    user: world.bot,
    guilds: [{ id: world.guildId, unavailable: true }],
    session_id: sessionId,
    resume_gateway_url: `${world.baseUrl.replace('http', 'ws')}/gateway`,
    application: { id: world.bot.id, flags: 0 },
    shard: [0, 1],
  }
}

function guildData(world: DiscordWorld) {
  const channels = [...world.channels.values()]
  const role = { permissions: '0', color: 0, hoist: false, position: 0, mentionable: false, flags: 0 }
  return {
    id: world.guildId,
    name: 'Test',
    owner_id: '222',
    unavailable: false,
    member_count: 2,
    large: false,
    roles: [
      { ...role, id: world.guildId, name: '@everyone', managed: false },
      { ...role, id: world.botRoleId, name: 'molecule', managed: true, tags: { bot_id: world.bot.id } },
    ],
    members: [
      {
        user: world.bot,
        roles: [world.botRoleId],
        joined_at: new Date().toISOString(),
        deaf: false,
        mute: false,
        flags: 0,
      },
    ],
    channels: channels.filter(({ type }) => type === 0),
    threads: channels.filter(({ type }) => type === 11).map((thread) => ({ ...thread, thread_metadata: {} })),
    emojis: [],
    features: [],
    voice_states: [],
    presences: [],
    stage_instances: [],
    stickers: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  }
}
