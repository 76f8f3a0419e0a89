/** The state of the fake Discord: one server with channels, threads and direct chats, their messages, and registered commands. */

const DISCORD_EPOCH_MS = 1_420_070_400_000

export interface DiscordUser {
  readonly id: string
  readonly username: string
  readonly global_name: string | null
  readonly discriminator: string
  readonly avatar: null
  readonly bot?: boolean
}

export interface DiscordChannel {
  readonly id: string
  /** 0: text channel, 1: direct chat, 11: public thread. */
  readonly type: 0 | 1 | 11
  readonly name?: string
  readonly guild_id?: string
  readonly parent_id?: string
  readonly recipients?: readonly DiscordUser[]
}

export interface DiscordAttachment {
  readonly id: string
  readonly filename: string
  readonly content_type?: string
  readonly size: number
  readonly url: string
}

interface DiscordButton {
  readonly type: number
  readonly custom_id: string
  readonly label: string
  readonly style: number
}

/** A message as the API sends it. */
export interface DiscordMessage {
  readonly id: string
  readonly channel_id: string
  readonly author: DiscordUser
  content: string
  readonly timestamp: string
  edited_timestamp: string | null
  readonly type: number
  readonly mentions: readonly DiscordUser[]
  readonly mention_roles: readonly string[]
  readonly attachments: readonly DiscordAttachment[]
  readonly flags?: number
  components: readonly { readonly type: number; readonly components: readonly DiscordButton[] }[]
  readonly nonce?: string
  readonly message_reference?: { readonly message_id: string; readonly type: 0 | 1 }
  readonly message_snapshots?: readonly { readonly message: object }[]
  readonly referenced_message?: DiscordMessage | null
}

export interface NewDiscordMessage {
  readonly channelId: string
  readonly author: DiscordUser
  readonly content: string
  readonly atMs?: number
  readonly replyTo?: string
  /** A copy of another message, whose author the service does not show. */
  readonly isForwarded?: boolean
  /** Its file is a voice note. */
  readonly isVoice?: boolean
  readonly files?: readonly { readonly name: string; readonly content: Uint8Array; readonly mediaType?: string }[]
  readonly components?: DiscordMessage['components']
  readonly nonce?: string
  /** False: `allowed_mentions` lets the message ping no user. */
  readonly pings?: boolean
}

const VOICE_FLAG = 8192

export class DiscordWorld {
  readonly token = 'MTExMTExMTExMTExMTExMTEx.GfAkE0.fake-discord-token-for-tests-only-000'
  readonly guildId = '900000000000000001'
  readonly botRoleId = '900000000000000002'
  readonly bot = discordUser('111111111111111111', 'molecule', true)
  /** GATEWAY_MESSAGE_CONTENT_LIMITED: the owner turned the intent on. */
  hasContentIntent = true
  readonly channels = new Map<string, DiscordChannel>()
  readonly messages: DiscordMessage[] = []
  readonly files = new Map<string, Uint8Array>()
  /** `<message id> <emoji>` of the bot. */
  readonly reactions = new Set<string>()
  readonly typings: string[] = []
  /** Rights that the bot does not have. */
  readonly denied = new Set<'attach' | 'history' | 'edit'>()
  /** Users who were notified by a message of the bot. */
  readonly pinged: string[] = []
  /** How often a message of the bot was edited. */
  readonly edits = new Map<string, number>()
  commands: readonly { readonly name: string }[] = []
  baseUrl = ''
  #count = 0n

  /** Unique and growing; it contains the time, like the ids of the service. */
  snowflake(atMs = Date.now()): string {
    this.#count += 1n
    return String((BigInt(atMs - DISCORD_EPOCH_MS) << 22n) | (this.#count & 0x3fffffn))
  }

  addChannel(kind: 'direct' | 'group' | 'thread', parentId?: string): DiscordChannel {
    const id = this.snowflake()
    const name = `${kind}-${id.slice(-4)}`
    const channel: DiscordChannel =
      kind === 'direct'
        ? { id, type: 1, recipients: [discordUser('222', 'ada')] }
        : {
            id,
            type: kind === 'thread' ? 11 : 0,
            name,
            guild_id: this.guildId,
            ...(parentId && { parent_id: parentId }),
          }
    this.channels.set(id, channel)
    return channel
  }

  /** The channels or the threads of the server. */
  guildChannels(type: 0 | 11): DiscordChannel[] {
    return [...this.channels.values()].filter((channel) => channel.type === type)
  }

  addMessage(given: NewDiscordMessage): DiscordMessage {
    const { channelId, author, content, atMs = Date.now(), replyTo, files = [], components = [], nonce } = given
    const mentioned = [...content.matchAll(/<@!?(\d+)>/g)].map(([, id = '']) => id)
    const referenced = replyTo === undefined ? undefined : this.messages.find(({ id }) => id === replyTo)
    const written: DiscordMessage = {
      id: this.snowflake(atMs),
      channel_id: channelId,
      author,
      content,
      components,
      timestamp: new Date(atMs).toISOString(),
      edited_timestamp: null,
      type: referenced ? 19 : 0,
      mentions: mentioned.map((id) => (id === this.bot.id ? this.bot : discordUser(id, `user-${id}`))),
      mention_roles: [...content.matchAll(/<@&(\d+)>/g)].map(([, id = '']) => id),
      attachments: files.map((file) => this.#attach(file)),
      ...(given.isVoice && { flags: VOICE_FLAG }),
      ...(nonce !== undefined && { nonce }),
      ...(referenced && { message_reference: { message_id: referenced.id, type: 0 }, referenced_message: referenced }),
    }
    const message = given.isForwarded ? asForward(written) : written
    if (author.bot && given.pings !== false)
      this.pinged.push(...mentioned, ...(content.match(/@(everyone|here)/g) ?? []))
    this.messages.push(message)
    return message
  }

  /** What the service does not show in another channel, or when it is deleted. */
  message(channelId: string, id: string): DiscordMessage | undefined {
    return this.messages.find((message) => message.channel_id === channelId && message.id === id)
  }

  deleteMessage(channelId: string, id: string): void {
    const index = this.messages.findIndex((message) => message.channel_id === channelId && message.id === id)
    if (index !== -1) this.messages.splice(index, 1)
  }

  #attach({ name, content, mediaType }: { name: string; content: Uint8Array; mediaType?: string }): DiscordAttachment {
    const id = this.snowflake()
    this.files.set(id, content)
    const url = `${this.baseUrl}/attachments/${id}/${encodeURIComponent(name)}`
    return { id, filename: name, size: content.length, url, ...(mediaType && { content_type: mediaType }) }
  }
}

/** The copy has no author. Its own text is empty, so it mentions no one. */
function asForward({ content, attachments, mentions, ...message }: DiscordMessage): DiscordMessage {
  const { timestamp, edited_timestamp, mention_roles, components } = message
  const copy = {
    type: 0,
    content,
    attachments,
    embeds: [],
    timestamp,
    edited_timestamp,
    mentions,
    mention_roles,
    components,
  }
  return {
    ...message,
    ...{ content: '', attachments: [], mentions: [], mention_roles: [] },
    message_reference: { message_id: message.id, type: 1 },
    message_snapshots: [{ message: copy }],
  }
}

export function discordUser(id: string, username: string, bot = false): DiscordUser {
  return { id, username, global_name: bot ? null : username, discriminator: '0', avatar: null, ...(bot && { bot }) }
}
