/**
 * A fake Discord on loopback: REST and gateway as the real library speaks them, and the people who write to the bot. A test
 * points discord.js at `apiUrl` and injects the faults of the real service.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import type { ChatService, Said, Written } from '../chat-service.ts'
import { type DiscordGateway, startDiscordGateway } from './gateway.ts'
import {
  createDiscordRest,
  type DiscordFault,
  type DiscordRequest,
  type DiscordRestContext,
  discordBuckets,
  type Interaction,
} from './rest.ts'
import { type DiscordChannel, type DiscordMessage, type DiscordUser, DiscordWorld, discordUser } from './world.ts'

/** Emoji to state, as the channel shows them. */
const STATES: Readonly<Record<string, string>> = {
  '👀': 'seen',
  '⏳': 'running',
  '❓': 'waiting',
  '✅': 'done',
  '❌': 'failed',
}
const ADA: Author = { id: '222', name: 'ada', isBot: false }

export interface FakeDiscord extends ChatService {
  readonly world: DiscordWorld
  readonly gateway: DiscordGateway
  readonly requests: readonly DiscordRequest[]
  /** The next call of this kind fails. */
  fail(method: string, path: RegExp, fault: DiscordFault): void
  /** Messages that a channel accepts in a time window. */
  limitMessages(bucket: { readonly limit: number; readonly windowMs: number }): void
  /** A person writes, and the gateway does not say so: only the history shows it. */
  sayUnseen(message: Said): string
  /** The event of a message, again or late. */
  repeat(messageId: string): void
}

export async function startDiscord(): Promise<FakeDiscord> {
  const world = new DiscordWorld()
  const interactions = new Map<string, Interaction>()
  const server = createServer()
  const gateway = startDiscordGateway(server, world)
  const context: DiscordRestContext = {
    world,
    interactions,
    faults: [],
    requests: [],
    buckets: {},
    refusals: 0,
    downloads: Promise.resolve(),
    dispatch: gateway.dispatch,
  }
  const rest = createDiscordRest(context)
  server.on('request', (request, response) => void rest(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  world.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const announce = (message: DiscordMessage, type = 'MESSAGE_CREATE') => {
    const guildId = world.channels.get(message.channel_id)?.guild_id
    gateway.dispatch(type, guildId ? { ...message, guild_id: guildId } : message)
  }
  const interact = (interaction: object, channelId: string, author: Author): Promise<string> => {
    const channel = world.channels.get(channelId)
    const token = `interaction-token-${world.snowflake()}`
    const user = toUser(author)
    return new Promise((answered) => {
      interactions.set(token, { createdMs: Date.now(), isAcknowledged: false, answered })
      gateway.dispatch('INTERACTION_CREATE', {
        id: world.snowflake(),
        application_id: world.bot.id,
        token,
        version: 1,
        channel_id: channelId,
        channel,
        ...(channel?.guild_id ? { guild_id: channel.guild_id, member: { user, roles: [] } } : { user }),
        locale: 'en-US',
        entitlements: [],
        authorizing_integration_owners: {},
        attachment_size_limit: 10_485_760,
        ...interaction,
      })
    })
  }
  return {
    world,
    gateway,
    requests: context.requests,
    token: world.token,
    apiUrl: `${world.baseUrl}/api`,
    newPlace(kind, parent) {
      const channel = world.addChannel(kind, parent?.id)
      if (kind === 'group') gateway.dispatch('CHANNEL_CREATE', channel)
      if (kind === 'thread') gateway.dispatch('THREAD_CREATE', { ...channel, newly_created: true, thread_metadata: {} })
      return toPlace(channel)
    },
    say(said) {
      const message = add(world, said)
      announce(message)
      if (said.twice) announce(message)
      return message.id
    },
    sayUnseen: (said) => add(world, said).id,
    repeat(messageId) {
      for (const message of world.messages.filter(({ id }) => id === messageId)) announce(message)
    },
    edit({ place, messageId, text }) {
      const message = world.message(place.id, messageId)
      if (message === undefined) throw new Error(`no message ${messageId}`)
      message.content = text
      message.edited_timestamp = new Date().toISOString()
      announce(message, 'MESSAGE_UPDATE')
    },
    remove({ place, messageId }) {
      const guild_id = world.channels.get(place.id)?.guild_id
      world.deleteMessage(place.id, messageId)
      gateway.dispatch('MESSAGE_DELETE', { id: messageId, channel_id: place.id, ...(guild_id && { guild_id }) })
    },
    written: (place) =>
      world.messages
        .filter(({ channel_id, author }) => channel_id === place.id && author.id === world.bot.id)
        .map((m) => toWritten(m, world)),
    reaction: (_, messageId) =>
      [...world.reactions]
        .filter((entry) => entry.startsWith(`${messageId} `))
        .map((entry) => STATES[entry.split(' ')[1] ?? ''])
        .join('+') || undefined,
    press({ place, messageId, label, author }) {
      const message = world.message(place.id, messageId)
      const buttons = message?.components.flatMap(({ components }) => components) ?? []
      const custom_id = buttons.find((button) => button.label === label)?.custom_id ?? 'gone'
      return interact({ type: 3, data: { custom_id, component_type: 2 }, message }, place.id, author)
    },
    react({ place, messageId, emoji, author }) {
      const guildId = world.channels.get(place.id)?.guild_id
      gateway.dispatch('MESSAGE_REACTION_ADD', reactionEvent({ guildId, place, messageId, emoji, author }))
    },
    command: ({ place, author, name, argument }) =>
      interact(
        {
          type: 2,
          data: { id: '1', name, type: 1, options: argument ? [{ name: 'argument', type: 3, value: argument }] : [] },
        },
        place.id,
        author,
      ),
    fail: (method, path, fault) => void context.faults.push({ method, path, fault }),
    failNextSend: (fault) => void context.faults.push({ method: 'POST', path: /\/messages$/, fault: FAULTS[fault] }),
    failNextHistory: () => void context.faults.push({ method: 'GET', path: /\/messages$/, fault: { status: 502 } }),
    limitMessages: (messages) => {
      context.buckets = { messages }
    },
    keepLimits: (secondMs) => {
      context.buckets = discordBuckets(secondMs)
    },
    refusals: () => context.refusals,
    refuseEdits: () => void world.denied.add('edit'),
    denyRights() {
      for (const right of ['attach', 'history'] as const) world.denied.add(right)
    },
    holdDownloads() {
      const held = Promise.withResolvers<void>()
      context.downloads = held.promise
      return held.resolve
    },
    sends: () => world.messages.filter(({ author }) => author.id === world.bot.id).length,
    dropConnections: gateway.drop,
    isConnected: gateway.isConnected,
    typings: (place) => world.typings.filter((id) => id === place.id).length,
    async close() {
      gateway.stop()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type NewReaction = Parameters<ChatService['react']>[0] & { readonly guildId: string | undefined }

const FAULTS = {
  rate_limited: { retryAfterMs: 100 },
  server_error: { status: 502 },
  lost_answer: 'lost_answer',
  no_answer: 'no_answer',
  refused: { status: 403 },
} as const satisfies Record<string, DiscordFault>

function add(world: DiscordWorld, said: Said): DiscordMessage {
  const { place, text, author = ADA, mentions, sentAtMs, files, replyTo, forwardedFrom } = said
  return world.addMessage({
    channelId: place.id,
    author: toUser(author),
    content: mentions ? `<@${world.bot.id}> ${text}` : text,
    ...(sentAtMs !== undefined && { atMs: sentAtMs }),
    ...(files && { files }),
    isVoice: files?.[0]?.isVoice === true,
    ...(replyTo !== undefined && { replyTo }),
    isForwarded: forwardedFrom !== undefined,
    pings: false,
  })
}

/** In a direct chat the service names the person by the id only. A reaction may have a tone of the skin. */
function reactionEvent({ guildId, place, messageId, emoji, author }: NewReaction) {
  return {
    user_id: author.id,
    channel_id: place.id,
    message_id: messageId,
    emoji: { id: null, name: emoji === '👍' ? '👍🏽' : emoji },
    type: 0,
    burst: false,
    ...(guildId !== undefined && { guild_id: guildId, member: { user: toUser(author), roles: [] } }),
  }
}

function toUser({ id, name, isBot }: Author): DiscordUser {
  return discordUser(id, name, isBot)
}

function toPlace({ id, type, name, parent_id }: DiscordChannel): Place {
  const isDirect = type === 1
  return { id, isDirect, name: isDirect ? 'ada' : `#${name}`, ...(parent_id && { parentId: parent_id }) }
}

function toWritten(message: DiscordMessage, world: DiscordWorld): Written {
  return {
    id: message.id,
    text: message.content,
    buttons: message.components.flatMap(({ components }) => components.map(({ label }) => label)),
    files: message.attachments.map(({ id, filename }) => ({
      name: filename,
      content: world.files.get(id) ?? new Uint8Array(),
    })),
    edits: world.edits.get(message.id) ?? 0,
  }
}
