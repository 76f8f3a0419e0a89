/** Translates between the raw objects of Discord's API and the channel seam. */
import type { APIMessage, APIUser, GatewayMessageReactionAddDispatchData } from 'discord.js'
import type {
  Author,
  ChannelConnectOptions,
  ChatPost,
  ChatPostFile,
  IncomingMessage,
  Place,
  SoughtPost,
} from '../chat/channel.ts'
import { signOf } from '../chat/emoji.ts'
import { type DiscordSelf, readableText, readForwarded, toFile, toQuoted } from './discord-quotes.ts'

const BUTTONS_PER_ROW = 5
const BUTTON_STYLES = { good: 3, plain: 2, bad: 4 } as const
/** A plain message and a reply. All others are notes of the service: joins, pins, new threads. */
const PERSON_TYPES = [0, 19]
/** Of a message that is one voice note. */
const VOICE_FLAG = 1 << 13
const DIRECT_TYPES = [1, 3]
const THREAD_TYPES = [10, 11, 12]

/** An id contains the time since then, in its upper bits. */
const EPOCH_MS = 1_420_070_400_000

/** The largest id before a time. */
export const idBefore = (ms: number): string => String((BigInt(Math.max(ms - EPOCH_MS, 1)) << 22n) - 1n)

export const timeOfId = (id: string): number => Number(BigInt(id) >> 22n) + EPOCH_MS

/** The part of a channel object that events and the API share. */
export interface RawChannel {
  readonly id: string
  readonly type: number
  readonly name?: string | null
  readonly parent_id?: string | null
}

export function isFromPerson({ type }: APIMessage): boolean {
  return PERSON_TYPES.includes(type)
}

export function toPlace({ id, type, name, parent_id }: RawChannel, person: string): Place {
  const isDirect = DIRECT_TYPES.includes(type)
  const isThread = THREAD_TYPES.includes(type)
  return {
    id,
    isDirect,
    name: isDirect ? person : `#${name ?? id}`,
    // The parent of a channel that is no thread is its category.
    ...(isThread && parent_id && { parentId: parent_id }),
  }
}

export function toAuthor({ id, username, global_name, bot }: APIUser, isWebhook = false): Author {
  return { id, name: global_name ?? username, isBot: bot === true || isWebhook }
}

export function toIncomingMessage(message: APIMessage, place: Place, me: DiscordSelf): IncomingMessage {
  const { id, author, content, mentions, mention_roles, attachments, timestamp, webhook_id } = message
  const isMentioned =
    mentions.some((user) => user.id === me.id) || (me.roleId !== undefined && mention_roles.includes(me.roleId))
  const quoted = toQuoted(message, me)
  const isVoice = ((message.flags ?? 0) & VOICE_FLAG) !== 0
  return {
    id,
    place,
    author: toAuthor(author, webhook_id !== undefined),
    sentAtMs: Date.parse(timestamp),
    isAddressed: place.isDirect || isMentioned || quoted?.isOwn === true,
    text: readableText(content, mentions, me),
    files: attachments.map((file) => ({ ...toFile(file), ...(isVoice && { isVoice }) })),
    ...(quoted && { quoted }),
    ...readForwarded(message, me),
  }
}

export type GatewayReaction = GatewayMessageReactionAddDispatchData

/** Undefined for a reaction that means nothing to the door. In a direct chat the event has only the id of the person. */
export function toReaction({ message_id: messageId, emoji, user_id: id, member }: GatewayReaction) {
  const sign = signOf(emoji.name ?? '')
  const author = member?.user ? toAuthor(member.user) : { id, name: '', isBot: false }
  return sign && { messageId, author, emoji: sign }
}

/** The body of a new message. Mentions in it notify no one, and Discord drops a second copy with the same nonce. */
export function messageBody({ text, replyTo, buttons = [], nonce, files = [] }: ChatPost) {
  const rows = Array.from({ length: Math.ceil(buttons.length / BUTTONS_PER_ROW) }, (_, row) => ({
    type: 1,
    components: buttons.slice(row * BUTTONS_PER_ROW, (row + 1) * BUTTONS_PER_ROW).map(({ id, label, style }) => ({
      type: 2,
      custom_id: id,
      label: label.slice(0, 80),
      style: BUTTON_STYLES[style],
    })),
  }))
  return {
    content: text,
    nonce,
    enforce_nonce: true,
    components: rows,
    allowed_mentions: { parse: [], replied_user: false },
    ...(replyTo !== undefined && { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
    ...(files.length > 0 && { attachments: files.map(({ name }, id) => ({ id, filename: name })) }),
  }
}

export function toUpload({ name, content, mediaType }: ChatPostFile) {
  return { name, data: Buffer.from(content), ...(mediaType !== undefined && { contentType: mediaType }) }
}

export function toSlashCommand({ name, text, argument }: ChannelConnectOptions['commands'][number]) {
  const options = argument === undefined ? [] : [{ type: 3, name: 'argument', description: argument.slice(0, 100) }]
  return { name, description: text.slice(0, 100), type: 1, options }
}

/** The history shows no nonce, so a copy is known by its text, its files and its time. */
export function isCopy(
  { id, content, attachments, timestamp }: APIMessage,
  { text, files = [], sinceMs, afterMessageId = '0' }: SoughtPost,
): boolean {
  const names = files.map(({ name }) => name).join()
  const sentNames = attachments.map(({ filename }) => filename).join()
  if (BigInt(id) <= BigInt(afterMessageId)) return false
  return Date.parse(timestamp) >= sinceMs && content === text.trim() && sentNames === names
}
