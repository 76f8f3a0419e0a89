/**
 * The Discord channel on discord.js: the gateway for what people write, REST for what the bot writes. It reads and writes
 * the raw objects of the API, so that events and history have one format.
 */
import type { APIMessage, Client, RESTOptions } from 'discord.js'
import { MoleculeError } from '../../errors.ts'
import { abortable, onAbort } from '../../wait.ts'
import type {
  Account,
  Channel,
  ChannelKind,
  ChannelLimits,
  ChannelOptions,
  ChatPost,
  IncomingMessage,
  SendResult,
} from '../chat/channel.ts'
import { downloadFile } from '../chat/service-calls.ts'
import { connectError, discordOutcome, discordRefusal, inviteUrl, mayNotReply } from './discord-errors.ts'
import { listenToGateway } from './discord-events.ts'
import { PAGE_MESSAGES, readHistory, readPlaces } from './discord-history.ts'
import type { DiscordLibrary, GatewayMessage } from './discord-incoming.ts'
import { DISCORD_TEXT_CHARS_MAX, renderDiscord } from './discord-markdown.ts'
import { isCopy, isFromPerson, messageBody, toIncomingMessage, toSlashCommand, toUpload } from './discord-messages.ts'
import { createReactions } from './discord-reactions.ts'

const CONNECT_MS = 30_000
const HANDSHAKE_MS = 5000
/** A rate limit of a reaction or a typing sign that is longer than this is not worth the wait. */
const RATE_LIMIT_WAIT_MS_MAX = 5000
const FILE_HOSTS = ['cdn.discordapp.com', 'media.discordapp.net']
const LIMITS: ChannelLimits = {
  textCharactersMax: DISCORD_TEXT_CHARS_MAX,
  uploadBytesMax: 10 * 1024 * 1024,
  downloadBytesMax: 25 * 1024 * 1024,
  editMs: 1500,
  typingMs: 9000,
  nonceMs: 120_000,
}

export const discordKind: ChannelKind = {
  kind: 'discord',
  tokenVariable: 'DISCORD_BOT_TOKEN',
  tokenSteps: [
    'Open https://discord.com/developers/applications and click New Application.',
    'Open Bot, click Reset Token and copy the token.',
    'On the same page turn on Message Content Intent.',
  ],
  async check(options, signal) {
    const library = await import('discord.js')
    const rest = new library.REST(restOptions(options)).setToken(options.token)
    try {
      const user = (await rest.get(library.Routes.user(), { signal })) as { id: string; username: string }
      const { flags = 0 } = (await rest.get(library.Routes.currentApplication(), { signal })) as { flags?: number }
      const { GatewayMessageContent, GatewayMessageContentLimited } = library.ApplicationFlags
      if ((flags & (GatewayMessageContent | GatewayMessageContentLimited)) === 0)
        throw discordRefusal(4014, options.token)
      return {
        account: { id: user.id, name: user.username },
        steps: [`Invite the bot to your server: ${inviteUrl(user.id)}`],
      }
    } catch (error) {
      throw connectError(error, options.token)
    }
  },
  open: async (options) => createDiscordChannel(options, await import('discord.js')),
}

function createDiscordChannel(options: ChannelOptions, library: DiscordLibrary): Channel {
  const { Routes } = library
  let closed: Promise<void> | undefined
  const client = createClient(options, library, () => closed !== undefined)
  const rest = client.rest.setToken(options.token)
  const reactions = createReactions(client, library)
  let me = ''
  const close = () => {
    closed ??= client.destroy()
    return closed
  }
  const read = (message: GatewayMessage, place: IncomingMessage['place']) =>
    message.author.id === me || !isFromPerson(message)
      ? undefined
      : toIncomingMessage(message, place, { id: me, roleId: botRole(client, message.guild_id) })
  return {
    limits: LIMITS,
    render: renderDiscord,
    close,
    async connect(events, { commands }, signal) {
      onAbort(signal, () => void close())
      listenToGateway(client, { events: reactions.watch(events), library, options, read }, signal)
      client.ws.once(library.GatewayDispatchEvents.Ready, ({ user }: { user: { id: string } }) => {
        me = user.id
      })
      const account = await login(client, { options, library, signal })
      const body = commands.map(toSlashCommand)
      await rest.put(Routes.applicationCommands(account.id), { body }).catch((error: unknown) => {
        const { error: problem } = discordOutcome(error)
        options.log.warn({ problem }, 'Discord did not take the commands of the bot')
      })
      return account
    },
    async send(message, signal) {
      const post = async ({ files = [], ...given }: ChatPost): Promise<SendResult> => {
        const call = { body: messageBody({ ...given, files }), files: files.map(toUpload), signal }
        const sent = (await rest.post(Routes.channelMessages(given.place), call)) as APIMessage
        return { type: 'sent', messageId: sent.id }
      }
      try {
        return await post(message).catch((error: unknown) => {
          if (!mayNotReply(error)) throw error
          return post({ ...message, replyTo: undefined })
        })
      } catch (error) {
        return discordOutcome(error)
      }
    },
    async edit({ place, messageId, text }, signal) {
      const body = { content: text, components: [], allowed_mentions: { parse: [] } }
      try {
        await rest.patch(Routes.channelMessage(place, messageId), { body, signal })
        return { type: 'sent', messageId }
      } catch (error) {
        const outcome = discordOutcome(error)
        return outcome.type === 'unknown' ? { type: 'failed', error: outcome.error } : outcome
      }
    },
    typing: async (place) => void (await rest.post(Routes.channelTyping(place)).catch(() => undefined)),
    react: ({ place, messageId }, state) => reactions.show(place, messageId, state).catch(() => undefined),
    async download({ ref }, bytesMax, signal) {
      const { host } = new URL(ref)
      const isOwn = FILE_HOSTS.includes(host) || (options.apiUrl !== undefined && host === new URL(options.apiUrl).host)
      // A file reference comes back from the store: it must not make the platform call another host.
      if (!isOwn) throw new MoleculeError('forbidden', 'the file is not on a server of Discord')
      return downloadFile(ref, { bytesMax, service: 'Discord' }, signal)
    },
    places: (signal) => readPlaces(rest, library, signal),
    history: (query, signal) => readHistory(query, { rest, library, read }, signal),
    async findSent(message, signal) {
      const query = new URLSearchParams({ limit: String(PAGE_MESSAGES) })
      const page = (await rest.get(Routes.channelMessages(message.place), { query, signal })) as APIMessage[]
      return page.find((sent) => sent.author.id === me && isCopy(sent, message))?.id
    },
  }
}

function createClient(
  options: ChannelOptions,
  { Client: DiscordClient, GatewayIntentBits, Options, SimpleShardingStrategy }: DiscordLibrary,
  isClosed: () => boolean,
): Client {
  const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits
  const { GuildMessageReactions, DirectMessageReactions } = GatewayIntentBits
  return new DiscordClient({
    intents: [Guilds, GuildMessages, DirectMessages, MessageContent, GuildMessageReactions, DirectMessageReactions],
    rest: restOptions(options),
    ws: {
      /**
       * Prevents that a bot comes back by itself and keeps the process alive: the library goes on to reconnect when it is
       * destroyed between two tries. Every try asks for the session first, so after the end that is never answered.
       */
      buildStrategy(manager) {
        const settings = manager.options
        const { retrieveSessionInfo } = settings
        settings.retrieveSessionInfo = (shard) =>
          isClosed() ? new Promise(() => undefined) : retrieveSessionInfo(shard)
        // A connection that is being made keeps the process alive for so long.
        settings.handshakeTimeout = HANDSHAKE_MS
        return new SimpleShardingStrategy(manager)
      },
    },
    // The door keeps what matters; a cache of messages would only grow.
    makeCache: Options.cacheWithLimits({ ...Options.DefaultMakeCacheSettings, MessageManager: 0 }),
  })
}

/** The door decides about every retry of a send or an edit, because it knows what may be doubled. */
function restOptions({ apiUrl }: ChannelOptions): Partial<RESTOptions> {
  return {
    ...(apiUrl !== undefined && { api: apiUrl }),
    retries: 0,
    rejectOnRateLimit: ({ route, method, retryAfter }) =>
      retryAfter > RATE_LIMIT_WAIT_MS_MAX || (/\/messages(\/:id)?$/.test(route) && method !== 'GET'),
  }
}

/** Resolves with the account when messages arrive. */
async function login(
  client: Client,
  { options, library, signal }: { options: ChannelOptions; library: DiscordLibrary; signal: AbortSignal },
): Promise<Account> {
  const end = Promise.withResolvers<Account>()
  const { Events, GatewayDispatchEvents } = library
  client.ws.once(GatewayDispatchEvents.Ready, ({ user }: { user: { id: string; username: string } }) =>
    end.resolve({ id: user.id, name: user.username }),
  )
  client.once(Events.ShardDisconnect, ({ code }) => {
    const refused = discordRefusal(code, options.token)
    if (refused) end.reject(refused)
  })
  // The library dials for ever; the caller decides whether to try again.
  const cancel = options.clock.after(CONNECT_MS, () => end.reject(new Error('timeout')))
  client.login(options.token).catch(end.reject)
  try {
    return await abortable(end.promise, signal)
  } catch (error) {
    await client.destroy()
    throw connectError(error, options.token)
  } finally {
    cancel()
  }
}

/** The role that Discord makes for the bot: people often mention it instead of the bot. */
function botRole(client: Client, guildId: string | undefined): string | undefined {
  const guild = guildId === undefined ? undefined : client.guilds.cache.get(guildId)
  return client.user ? guild?.roles.botRoleFor(client.user)?.id : undefined
}
