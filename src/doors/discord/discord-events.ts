/**
 * What comes from Discord's gateway: messages in their order, interactions (buttons, slash commands), and the state of the
 * connection. An interaction must be acknowledged within three seconds, so it is acknowledged first and answered later.
 */
import type { APIInteraction, APIMessage, APIUser, Client, REST } from 'discord.js'
import { createKeyedQueue, sleep } from '../../wait.ts'
import type { ChannelEvents, ChannelOptions, IncomingMessage, Place } from '../chat/channel.ts'
import { discordRefusal } from './discord-errors.ts'
import { renderDiscord } from './discord-markdown.ts'
import {
  type GatewayReaction,
  isFromPerson,
  type RawChannel,
  timeOfId,
  toAuthor,
  toPlace,
  toReaction,
} from './discord-messages.ts'

export type DiscordLibrary = typeof import('discord.js')
export type GatewayMessage = APIMessage & { readonly guild_id?: string }
type ChannelOfEvent = Pick<GatewayReaction, 'channel_id' | 'guild_id'>

const PLACES_MAX = 1000
/** A message that the door could not store is given again after this time, so often; then only the history has it. */
const GIVE_AGAIN_MS = 2000
const TRIES_MAX = 150
/** Messages that wait for the door; the history has the others. */
const WAITING_MAX = 1000
const EPHEMERAL = 64

export interface DiscordEventsContext {
  readonly library: DiscordLibrary
  readonly options: ChannelOptions
  readonly events: ChannelEvents
  /** The message as the door sees it; undefined for the bot's own. */
  read(message: GatewayMessage, place: Place): IncomingMessage | undefined
}

export function listenToGateway(client: Client, context: DiscordEventsContext, signal: AbortSignal): void {
  const { library, events, options } = context
  const { Events, GatewayDispatchEvents } = library
  const findPlace = createPlaces(client.rest, library)
  const receive = async (message: GatewayMessage) => {
    if (!isFromPerson(message)) return
    const { author } = message
    const incoming = context.read(message, await findPlace(message, author.global_name ?? author.username))
    if (incoming) await events.message({ ...incoming, isLive: true })
  }
  const react = async (reaction: GatewayReaction) => {
    const read = toReaction(reaction)
    if (read) await events.reacted?.({ ...read, place: await findPlace(reaction, read.author.name) })
  }
  let isBehind = false
  const giveUntilStored = async (message: GatewayMessage) => {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await receive(message)
      } catch (error) {
        if (isGone(error)) return
        if (tries === TRIES_MAX) {
          options.log.warn(
            { message: message.id },
            'a message of Discord could not be stored; it is read from the history',
          )
          isBehind = true
          return
        }
        await sleep(options.clock, GIVE_AGAIN_MS, signal)
      }
    }
  }
  const inChannel = createKeyedQueue()
  let waiting = 0
  client.ws.on(GatewayDispatchEvents.MessageCreate, (message: GatewayMessage) => {
    if (waiting >= WAITING_MAX) {
      isBehind = true
      return
    }
    waiting += 1
    // A channel that is not known is looked up first: only its own messages wait for that.
    void inChannel(message.channel_id, () => giveUntilStored(message)).then(() => {
      waiting -= 1
      if (waiting > 0 || !isBehind) return
      isBehind = false
      events.reconnected()
    })
  })
  client.ws.on(GatewayDispatchEvents.MessageReactionAdd, (reaction: GatewayReaction) => {
    react(reaction).catch((cause: { status?: number }) =>
      options.log.debug({ status: cause.status }, 'a reaction of Discord could not be handled'),
    )
  })
  client.ws.on(GatewayDispatchEvents.InteractionCreate, (interaction: APIInteraction) => {
    receiveInteraction(interaction, client.rest, context).catch((cause: { status?: number }) =>
      options.log.warn({ status: cause.status }, 'an interaction of Discord could not be handled'),
    )
  })
  let sessions = 0
  client.ws.on(GatewayDispatchEvents.Ready, () => {
    sessions += 1
    // A new session replays nothing, unlike a resumed one.
    if (sessions > 1) events.reconnected()
    events.problem(undefined)
  })
  client.ws.on(GatewayDispatchEvents.Resumed, () => events.problem(undefined))
  client.on(Events.ShardReconnecting, () => events.problem('The connection to Discord ended; the bot reconnects.'))
  client.on(Events.ShardDisconnect, ({ code }) => {
    const refused = discordRefusal(code, options.token)
    if (refused && sessions > 0) events.refused(refused)
  })
}

/** The bot no longer sees the channel of a message. */
export function isGone(error: unknown): boolean {
  const { status } = error as { status?: unknown }
  return status === 403 || status === 404
}

/** The place of a message. An event has no description of its channel, so that is asked once. */
function createPlaces(rest: REST, { Routes }: DiscordLibrary) {
  const known = new Map<string, Place>()
  return async ({ channel_id, guild_id }: ChannelOfEvent, person: string): Promise<Place> => {
    if (guild_id === undefined) return toPlace({ id: channel_id, type: 1 }, person)
    const place = known.get(channel_id) ?? toPlace((await rest.get(Routes.channel(channel_id))) as RawChannel, person)
    if (known.size >= PLACES_MAX) known.clear()
    known.set(channel_id, place)
    return place
  }
}

async function receiveInteraction(
  interaction: APIInteraction,
  rest: REST,
  { library, events }: DiscordEventsContext,
): Promise<void> {
  const { Routes, InteractionType, InteractionResponseType } = library
  const { id, token, application_id } = interaction
  const user = interaction.member?.user ?? interaction.user
  if (user === undefined || interaction.channel === undefined) return
  const place = toPlace(interaction.channel as RawChannel, user.global_name ?? user.username)
  const base = { id, place, author: toAuthor(user as APIUser) }
  const acknowledge = (type: number) =>
    rest.post(Routes.interactionCallback(id, token), { auth: false, body: { type, data: { flags: EPHEMERAL } } })
  const followUp = (content: string) =>
    rest.post(Routes.webhook(application_id, token), { auth: false, body: { content, flags: EPHEMERAL } })
  if (interaction.type === InteractionType.MessageComponent) {
    await acknowledge(InteractionResponseType.DeferredMessageUpdate)
    const answer = async (text: string) => void (await followUp(text.slice(0, 2000)))
    const { custom_id: buttonId } = interaction.data
    await events.press({ ...base, buttonId, messageId: interaction.message.id, answer })
  } else if (interaction.type === InteractionType.ApplicationCommand) {
    await acknowledge(InteractionResponseType.DeferredChannelMessageWithSource)
    const answer = async (markdown: string) => {
      const [content = '(no text)', ...rest_] = renderDiscord(markdown)
      const body = { content, allowed_mentions: { parse: [] } }
      await rest.patch(Routes.webhookMessage(application_id, token), { auth: false, body })
      for (const text of rest_) await followUp(text)
    }
    const { name, options = [] } = interaction.data as { name: string; options?: { value?: unknown }[] }
    await events.command({ ...base, name, argument: String(options[0]?.value ?? ''), sentAtMs: timeOfId(id), answer })
  }
}
