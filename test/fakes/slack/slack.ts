/**
 * A fake Slack on loopback: the Web API and Socket Mode as the real libraries speak them, and the people who write to the bot. It
 * refuses what the real service refuses.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import type { ChatService, Said, Written } from '../chat-service.ts'
import { type SlackSockets, startSlackSockets } from './socket-mode.ts'
import { createSlackWeb, type SlackFault, type SlackWebContext } from './web-api.ts'
import { type SlackRow, SlackWorld } from './world.ts'

const STATES: Readonly<Record<string, string>> = {
  eyes: 'seen',
  hourglass_flowing_sand: 'running',
  question: 'waiting',
  white_check_mark: 'done',
  x: 'failed',
}
const ADA: Author = { id: 'U0ADA', name: 'ada', isBot: false }
const REACTIONS = { '👍': '+1', '👎': '-1', '🛑': 'octagonal_sign' } as const
const SENDS = ['chat.postMessage', 'files.completeUploadExternal']

export interface FakeSlack extends ChatService {
  readonly world: SlackWorld
  readonly sockets: SlackSockets
  readonly calls: SlackWebContext['calls']
  readonly appToken: string
  fail(method: string, fault: SlackFault): void
  /** A person writes, and no event says so: only the history shows it. */
  sayUnseen(message: Said): string
  /** A person reacts to a message, by the name that Slack has for it. */
  reactNamed(reaction: { place: Place; messageId: string; name: string; author: Author }): void
}

export async function startSlack(): Promise<FakeSlack> {
  const world = new SlackWorld()
  const server = createServer()
  const sockets = startSlackSockets(server)
  const context: SlackWebContext = {
    world,
    sockets,
    faults: [],
    calls: [],
    secondMs: 0,
    refusals: 0,
    downloads: Promise.resolve(),
    responses: new Map(),
  }
  const web = createSlackWeb(context)
  server.on('request', (request, response) => void web(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  world.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const emit = (event: object) =>
    sockets.send('events_api', { type: 'event_callback', team_id: world.team, event_id: `Ev${world.stamp()}`, event })
  const announce = (row: SlackRow) => emit({ ...world.show(row), channel: row.channel })
  const reactNamed: FakeSlack['reactNamed'] = ({ place, messageId, name, author }) => {
    know(world, author)
    const item = { type: 'message', channel: partsOf(place).channel, ts: messageId }
    emit({ type: 'reaction_added', user: author.id, reaction: name, item })
  }
  let responses = 0
  /** Sends a press or a command; resolves with what only the person sees. */
  const interact = (type: 'interactive' | 'slash_commands', payload: object): Promise<string> =>
    new Promise((answered) => {
      const key = String(++responses)
      context.responses.set(key, answered)
      sockets.send(type, { ...payload, response_url: `${world.baseUrl}/response/${key}` })
    })
  return {
    world,
    sockets,
    calls: context.calls,
    token: world.botToken,
    appToken: world.appToken,
    apiUrl: `${world.baseUrl}/api`,
    newPlace: (kind, parent) => newPlace(world, kind, parent),
    say(said) {
      const row = add(world, said)
      announce(row)
      if (said.twice) announce(row)
      return row.ts
    },
    sayUnseen: (said) => add(world, said).ts,
    edit({ place, messageId, text }) {
      const row = required(world, place, messageId)
      const previous_message = world.show(row)
      row.text = escaped(text)
      const message = { ...world.show(row), edited: { ts: world.stamp() } }
      emit({
        type: 'message',
        subtype: 'message_changed',
        channel: row.channel,
        message,
        previous_message,
        hidden: true,
      })
    },
    remove({ place, messageId }) {
      const row = required(world, place, messageId)
      const previous_message = world.show(row)
      row.isDeleted = true
      const event = { type: 'message', subtype: 'message_deleted', channel: row.channel, deleted_ts: row.ts }
      emit({ ...event, previous_message, hidden: true })
    },
    react: ({ emoji, ...reaction }) => reactNamed({ ...reaction, name: REACTIONS[emoji] }),
    reactNamed,
    refuseEdits() {
      world.refusesEdits = true
    },
    written: (place) => world.rows.filter((row) => isWrittenIn(row, place, world)).map(toWritten),
    reaction: (place, messageId) =>
      [...world.reactions]
        .filter((entry) => entry.startsWith(`${partsOf(place).channel} ${messageId} `))
        .map((entry) => STATES[entry.split(' ')[2] ?? ''])
        .join('+') || undefined,
    press({ place, messageId, label, author }) {
      know(world, author)
      const { channel } = partsOf(place)
      const row = required(world, place, messageId)
      const buttons = row.blocks.flatMap(({ elements = [] }) => elements)
      const button = buttons.find(({ text }) => text.text === label) ?? { value: 'gone', action_id: 'gone' }
      const action = { ...button, action_ts: world.stamp() }
      const message = world.show(row)
      const user = { id: author.id, username: author.name }
      return interact('interactive', {
        type: 'block_actions',
        user,
        channel: { id: channel },
        message,
        actions: [action],
      })
    },
    command({ place, author, name, argument = '' }) {
      know(world, author)
      const { channel, thread_ts } = partsOf(place)
      if (thread_ts !== undefined) throw new Error('Slack has no commands in threads')
      const text = `${name} ${argument}`.trim()
      const who = { user_id: author.id, channel_id: channel, trigger_id: `trigger-${world.stamp()}` }
      return interact('slash_commands', { command: '/molecule', text, ...who })
    },
    fail: (method, fault) => void context.faults.push({ methods: [method], fault }),
    failNextSend: (fault) => void context.faults.push({ methods: SENDS, fault: FAULTS[fault] }),
    failNextHistory: () =>
      void context.faults.push({ methods: ['conversations.history', 'conversations.replies'], fault: { status: 502 } }),
    keepLimits(secondMs) {
      context.secondMs = secondMs
    },
    refusals: () => context.refusals,
    denyRights() {
      for (const scope of ['files:write', 'channels:history', 'im:history']) world.scopes.delete(scope)
    },
    holdDownloads() {
      const held = Promise.withResolvers<void>()
      context.downloads = held.promise
      return held.resolve
    },
    sends: () => world.rows.filter(({ user }) => user === world.bot.user).length,
    dropConnections: sockets.drop,
    isConnected: sockets.isConnected,
    // A bot has no sign of writing in Slack.
    typings: () => 0,
    async close() {
      sockets.stop()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const FAULTS = {
  rate_limited: { retryAfterMs: 100 },
  server_error: { status: 502 },
  lost_answer: 'lost_answer',
  no_answer: 'no_answer',
  refused: { error: 'restricted_action' },
} as const satisfies Record<string, SlackFault>

function partsOf({ id }: Place): { channel: string; thread_ts?: string } {
  const [channel = '', thread_ts] = id.split('/')
  return thread_ts === undefined ? { channel } : { channel, thread_ts }
}

function newPlace(world: SlackWorld, kind: 'direct' | 'group' | 'thread', parent?: Place): Place {
  if (kind === 'thread') {
    const channel = partsOf(parent ?? newPlace(world, 'group')).channel
    // A thread hangs on a message; this one is of another bot, which the platform ignores.
    know(world, { id: 'U0NEWS', name: 'news', isBot: true })
    const { ts } = world.add({ channel, text: 'news', user: 'U0NEWS', bot_id: 'B0NEWS' })
    return { id: `${channel}/${ts}`, parentId: channel, isDirect: false, name: `#${world.channels.get(channel)?.name}` }
  }
  const channel = world.addChannel(kind)
  if (kind === 'direct') {
    know(world, ADA)
    channel.user = ADA.id
  }
  const isDirect = kind === 'direct'
  return { id: channel.id, isDirect, name: isDirect ? ADA.name : `#${channel.name}` }
}

const know = (world: SlackWorld, { id, name, isBot }: Author) => void world.users.set(id, { name, isBot })

function add(world: SlackWorld, said: Said): SlackRow {
  const { place, text, author = ADA, mentions = false, sentAtMs, files = [], forwardedFrom } = said
  know(world, author)
  const shared = { is_share: true, author_name: forwardedFrom, text: escaped(text) }
  return world.add({
    ...partsOf(place),
    user: author.id,
    bot_id: author.isBot ? `B${author.id}` : undefined,
    text: forwardedFrom === undefined ? `${mentions ? `<@${world.bot.user}> ` : ''}${escaped(text)}` : '',
    attachments: forwardedFrom === undefined ? [] : [shared],
    files: files.map((file) => world.addFile(file)),
    ...(sentAtMs !== undefined && { atMs: sentAtMs }),
  })
}

function required(world: SlackWorld, place: Place, messageId: string): SlackRow {
  const row = world.find(partsOf(place).channel, messageId)
  if (row === undefined) throw new Error(`no message ${messageId}`)
  return row
}

function isWrittenIn(row: SlackRow, place: Place, { bot }: SlackWorld): boolean {
  const { channel, thread_ts } = partsOf(place)
  return row.user === bot.user && row.channel === channel && row.thread_ts === thread_ts && !row.isDeleted
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** As a person reads it: a link by its name, no escapes, and the marks as they are. */
function asRead(text: string): string {
  const named = text.replaceAll(
    /<([^<>|]*)(?:\|([^<>]*))?>/g,
    (_all, address: string, label?: string) => label ?? address,
  )
  return named.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

function toWritten({ ts, text, blocks, files, edits }: SlackRow): Written {
  return {
    id: ts,
    text: asRead(text),
    buttons: blocks.flatMap(({ elements = [] }) => elements.map((button) => button.text.text)),
    files: files.map(({ name, content = new Uint8Array() }) => ({ name, content })),
    edits,
  }
}
