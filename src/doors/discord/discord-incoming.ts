/**
 * Messages of Discord's gateway, each channel in its own order: new ones are given until they are stored, edits and deletions
 * come behind them. What does not fit is read from the history.
 */
import type {
  APIMessage,
  Client,
  GatewayMessageDeleteBulkDispatchData,
  GatewayMessageDeleteDispatchData,
  REST,
} from 'discord.js'
import { createKeyedQueue, sleep } from '../../wait.ts'
import type { ChannelEvents, ChannelOptions, IncomingMessage, Place } from '../chat/channel.ts'
import { type GatewayReaction, isFromPerson, type RawChannel, toPlace, toReaction } from './discord-messages.ts'

export type DiscordLibrary = typeof import('discord.js')
export type GatewayMessage = APIMessage & { readonly guild_id?: string }
type ChannelOfEvent = Pick<GatewayReaction, 'channel_id' | 'guild_id'>

const PLACES_MAX = 1000
/** A message that the door could not store is given again after this time, so often; then only the history has it. */
const GIVE_AGAIN_MS = 2000
const TRIES_MAX = 150
/** Messages, edits and deletions that wait for the door; the history has the others. */
const WAITING_MAX = 1000

export interface DiscordEventsContext {
  readonly library: DiscordLibrary
  readonly options: ChannelOptions
  readonly events: ChannelEvents
  /** The message as the door sees it; undefined for the bot's own. */
  read(message: GatewayMessage, place: Place): IncomingMessage | undefined
}

export function listenToMessages(client: Client, context: DiscordEventsContext, signal: AbortSignal): void {
  const { library, events, options } = context
  const { GatewayDispatchEvents: on } = library
  const findPlace = createPlaces(client.rest, library)
  const inChannel = createKeyedQueue()
  let isBehind = false
  let waiting = 0
  // A channel that is not known is looked up first: only its own messages wait for that.
  const add = (channelId: string, work: () => Promise<void>) => {
    if (waiting >= WAITING_MAX) {
      isBehind = true
      return
    }
    waiting += 1
    void inChannel(channelId, work)
      .catch((cause: { status?: number }) =>
        options.log.debug({ status: cause.status }, 'an edit or a deletion on Discord could not be read'),
      )
      .then(() => {
        waiting -= 1
        if (waiting > 0 || !isBehind) return
        isBehind = false
        events.reconnected()
      })
  }
  const placeOf = (message: GatewayMessage) => findPlace(message, message.author.global_name ?? message.author.username)
  const react = async (reaction: GatewayReaction) => {
    const read = toReaction(reaction)
    if (read) await events.reacted?.({ ...read, place: await findPlace(reaction, read.author.name) })
  }
  const receive = async (message: GatewayMessage) => {
    if (!isFromPerson(message)) return
    const incoming = context.read(message, await placeOf(message))
    if (incoming) await events.message({ ...incoming, isLive: true })
  }
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
  const forget = (place: string, ids: readonly string[]) =>
    add(place, async () => {
      for (const messageId of ids) await events.deleted?.({ place, messageId })
    })
  client.ws.on(on.MessageCreate, (message: GatewayMessage) => add(message.channel_id, () => giveUntilStored(message)))
  client.ws.on(on.MessageReactionAdd, (reaction: GatewayReaction) => {
    react(reaction).catch((cause: { status?: number }) =>
      options.log.debug({ status: cause.status }, 'a reaction of Discord could not be handled'),
    )
  })
  client.ws.on(on.MessageUpdate, (message: GatewayMessage) => {
    // The event of a new preview of a link may have a part of the message only.
    if (message.author === undefined || message.content === undefined || !isFromPerson(message)) return
    add(message.channel_id, async () => {
      const incoming = context.read(message, await placeOf(message))
      if (incoming) await events.edited?.(incoming)
    })
  })
  client.ws.on(on.MessageDelete, ({ id, channel_id }: GatewayMessageDeleteDispatchData) => forget(channel_id, [id]))
  client.ws.on(on.MessageDeleteBulk, ({ ids, channel_id }: GatewayMessageDeleteBulkDispatchData) =>
    forget(channel_id, ids),
  )
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
