/** Translates between the objects of Telegram's Bot API and the channel seam. */
import type { CallbackQuery, Message, MessageReactionUpdated, Update, User } from 'grammy/types'
import type { Author, ChatPost, IncomingFile, IncomingMessage, IncomingReaction, Place } from '../chat/channel.ts'
import { STOP_SIGN, signOf } from '../chat/emoji.ts'
import { fullName, nameOfChat, nameOfOrigin, toQuoted } from './telegram-quotes.ts'

const BUTTON_LABEL_CHARS_MAX = 60
/** The service has a fixed list of reactions, without a sign for "stop". */
const STOP_EMOJI = '😴'

export interface BotAccount {
  readonly id: number
  readonly username: string
}

/** Where a post goes, as the methods of the API take it. */
export function targetOf(place: string): { readonly chat_id: number; readonly message_thread_id?: number } {
  const [chat, thread] = place.split('/')
  return { chat_id: Number(chat), ...(thread !== undefined && { message_thread_id: Number(thread) }) }
}

/** A topic is a place of its own. Replies in a group without topics have a thread id too; they belong to the group. */
function toPlace({
  chat,
  message_thread_id,
  is_topic_message,
}: Pick<Message, 'chat' | 'message_thread_id' | 'is_topic_message'>): Place {
  const isDirect = chat.type === 'private'
  const name = chat.type === 'private' ? fullName(chat) : chat.title
  const id = String(chat.id)
  if (!is_topic_message || message_thread_id === undefined) return { id, isDirect, name }
  return { id: `${id}/${message_thread_id}`, parentId: id, isDirect, name }
}

function toAuthor(user: User): Author {
  return { id: String(user.id), name: fullName(user), isBot: user.is_bot }
}

interface NewMessageUpdate {
  readonly update_id: number
  readonly message?: Update['message'] | undefined
}

/** Undefined for what is no message of a person: joins, pins, new titles. */
export function toIncomingMessage(
  { update_id, message }: NewMessageUpdate,
  me: BotAccount,
): IncomingMessage | undefined {
  if (message === undefined) return undefined
  const text = message.text ?? message.caption ?? ''
  const files = filesOf(message)
  if (message.text === undefined && message.caption === undefined && files.length === 0) return undefined
  const { from, sender_chat, message_id, date, forward_origin, media_group_id } = message
  // An anonymous administrator writes in the name of the group; `from` is then an account of the service.
  const author = sender_chat
    ? { id: String(sender_chat.id), name: nameOfChat(sender_chat), isBot: false }
    : toAuthor(from as User)
  const mention = readMentions(message, text, me)
  const quoted = toQuoted(message, me.id)
  return {
    id: String(update_id),
    messageId: String(message_id),
    place: toPlace(message),
    author,
    text: mention.text,
    files,
    sentAtMs: date * 1000,
    isAddressed: message.chat.type === 'private' || mention.isAddressed || quoted?.isOwn === true,
    ...(quoted && { quoted }),
    ...(forward_origin && { forwardedFrom: nameOfOrigin(forward_origin) }),
    ...(media_group_id !== undefined && { groupId: media_group_id }),
  }
}

/** The text without mentions of the bot, and whether it speaks to the bot: by a mention or by a command. */
function readMentions(
  message: Message,
  text: string,
  me: BotAccount,
): { readonly text: string; readonly isAddressed: boolean } {
  let isAddressed = false
  let shown = text
  const own = `@${me.username}`.toLowerCase()
  for (const entity of [...(message.entities ?? message.caption_entities ?? [])].reverse()) {
    const { type, offset, length } = entity
    const part = text.slice(offset, offset + length)
    const isMention =
      (type === 'mention' && part.toLowerCase() === own) || (entity.type === 'text_mention' && entity.user.id === me.id)
    const [name = '', bot] = type === 'bot_command' && offset === 0 ? part.split('@') : []
    const isCommand = name !== '' && (bot === undefined || `@${bot}`.toLowerCase() === own)
    if (!isMention && !isCommand) continue
    isAddressed = true
    shown = shown.slice(0, offset) + (isCommand ? name : '') + shown.slice(offset + length)
  }
  return { text: shown.trim(), isAddressed }
}

function filesOf(message: Message): IncomingFile[] {
  const { document, photo, audio, video, voice, video_note, animation, sticker } = message
  const largest = photo?.at(-1)
  const found = [
    // An animation is a document too, for old programs.
    ...(document && !animation ? [{ ...document, fallback: 'document' }] : []),
    ...(largest ? [{ ...largest, fallback: 'photo.jpg', mime_type: 'image/jpeg' }] : []),
    ...(audio ? [{ ...audio, fallback: 'audio.mp3' }] : []),
    ...(video ? [{ ...video, fallback: 'video.mp4' }] : []),
    ...(animation ? [{ ...animation, fallback: 'animation.mp4' }] : []),
    ...(voice ? [{ ...voice, fallback: 'voice.ogg', isVoice: true }] : []),
    ...(video_note ? [{ ...video_note, fallback: 'video.mp4' }] : []),
    ...(sticker ? [{ ...sticker, fallback: 'sticker.webp' }] : []),
  ] as readonly {
    file_id: string
    fallback: string
    file_name?: string
    mime_type?: string
    file_size?: number
    isVoice?: true
  }[]
  return found.map(({ file_id, fallback, file_name, mime_type, file_size, isVoice }) => ({
    ref: file_id,
    name: file_name ?? fallback,
    ...(mime_type !== undefined && { mediaType: mime_type }),
    ...(file_size !== undefined && { bytes: file_size }),
    ...(isVoice && { isVoice }),
  }))
}

/** The place and the author of a pressed button; undefined when its message is too old for the service. */
export function toPress({ id, from, data, message }: CallbackQuery) {
  if (data === undefined || message === undefined) return undefined
  const place = toPlace('text' in message || 'from' in message ? message : { chat: message.chat })
  return { id, place, author: toAuthor(from), buttonId: data, messageId: String(message.message_id) }
}

/** The signs that a person added. An anonymous administrator has no account, so its reactions never count. */
export function toReactions(update: MessageReactionUpdated): IncomingReaction[] {
  const { chat, message_id, user, old_reaction, new_reaction } = update
  if (user === undefined) return []
  const emojis = (reactions: MessageReactionUpdated['new_reaction']) =>
    reactions.flatMap((reaction) => (reaction.type === 'emoji' ? reaction.emoji : []))
  const before = emojis(old_reaction)
  return emojis(new_reaction)
    .filter((emoji) => !before.includes(emoji))
    .flatMap((emoji) => (emoji === STOP_EMOJI ? STOP_SIGN : (signOf(emoji) ?? [])))
    .map((emoji) => ({
      place: toPlace({ chat }),
      messageId: String(message_id),
      author: toAuthor(user),
      emoji,
      isInAnyThread: true,
    }))
}

/** What a text and a file have in common. */
export function postOptions({ place, replyTo, buttons = [] }: ChatPost) {
  const inline_keyboard = [
    buttons.map(({ id, label }) => ({ text: label.slice(0, BUTTON_LABEL_CHARS_MAX), callback_data: id })),
  ]
  return {
    ...targetOf(place),
    parse_mode: 'HTML' as const,
    ...(replyTo !== undefined && {
      reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true },
    }),
    ...(buttons.length > 0 && { reply_markup: { inline_keyboard } }),
  }
}
