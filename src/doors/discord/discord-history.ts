/** Reads what the bot missed: the messages of a channel, and the channels and threads of its servers. */
import type { REST } from 'discord.js'
import type { HistoryQuery, IncomingMessage, Place } from '../chat/channel.ts'
import { type DiscordLibrary, type GatewayMessage, isGone } from './discord-incoming.ts'
import { idBefore, type RawChannel, toPlace } from './discord-messages.ts'

export const PAGE_MESSAGES = 100
/** Pages of one call: between the messages of people there may be many of the bot itself. */
const PAGES_MAX = 20
/** One page of the service; the bot does not read the threads of further servers. */
const GUILDS_MAX = 200

export interface HistoryContext {
  readonly rest: REST
  readonly library: DiscordLibrary
  /** Undefined for messages of the bot itself and of the service. */
  read(message: GatewayMessage, place: Place): IncomingMessage | undefined
}

/** The oldest first; the service gives each page the newest first. Empty where the bot no longer sees the channel. */
export async function readHistory(
  query: HistoryQuery,
  { rest, library, read }: HistoryContext,
  signal: AbortSignal,
): Promise<readonly IncomingMessage[]> {
  const { place, limit } = query
  const route = library.Routes.channelMessages(place.id)
  const found: IncomingMessage[] = []
  let after = 'sinceMs' in query ? idBefore(query.sinceMs) : query.afterMessageId
  for (let pages = 0; pages < PAGES_MAX && found.length < limit; pages++) {
    const page = new URLSearchParams({ after, limit: String(Math.min(limit - found.length, PAGE_MESSAGES)) })
    const messages = (await rest.get(route, { query: page, signal }).catch(emptyWhereGone)) as GatewayMessage[]
    if (messages.length === 0) break
    after = messages[0]?.id ?? after
    found.push(...messages.reverse().flatMap((message) => read(message, place) ?? []))
  }
  return found
}

function emptyWhereGone(error: unknown): [] {
  if (isGone(error)) return []
  throw error
}

export async function readPlaces(
  rest: REST,
  { Routes }: DiscordLibrary,
  signal: AbortSignal,
): Promise<readonly Place[]> {
  const query = new URLSearchParams({ limit: String(GUILDS_MAX) })
  const guilds = (await rest.get(Routes.userGuilds(), { query, signal })) as { readonly id: string }[]
  const places: Place[] = []
  for (const { id } of guilds) {
    const channels = (await rest.get(Routes.guildChannels(id), { signal })) as RawChannel[]
    const active = (await rest.get(Routes.guildActiveThreads(id), { signal })) as { readonly threads: RawChannel[] }
    places.push(...[...channels, ...active.threads].map((channel) => toPlace(channel, channel.name ?? channel.id)))
  }
  return places
}
