/** What a message of Telegram refers to: the message that it replies to or quotes, and who wrote a forwarded one. */
import type { Chat, Message, MessageOrigin } from 'grammy/types'
import type { QuotedMessage } from '../chat/channel.ts'

/** A message may quote a part; that part is then the text. A reply to a message of another chat has no message of its own. */
export function toQuoted({ reply_to_message, external_reply, quote }: Message, me: number): QuotedMessage | undefined {
  if (external_reply) {
    return { authorName: nameOfOrigin(external_reply.origin), isOwn: false, text: quote?.text ?? '' }
  }
  // Every message of a topic replies to the one that opened it, unless it replies to another one.
  if (reply_to_message === undefined || reply_to_message.forum_topic_created !== undefined) return undefined
  const { message_id, from, sender_chat, text, caption, document } = reply_to_message
  return {
    messageId: String(message_id),
    authorName: sender_chat ? nameOfChat(sender_chat) : fullName(from ?? {}),
    isOwn: from?.id === me,
    text: quote?.text ?? text ?? caption ?? document?.file_name ?? '',
  }
}

export function nameOfOrigin(origin: MessageOrigin): string {
  switch (origin.type) {
    case 'user':
      return fullName(origin.sender_user)
    case 'hidden_user':
      return origin.sender_user_name
    case 'chat':
      return nameOfChat(origin.sender_chat)
    case 'channel':
      return nameOfChat(origin.chat)
    default:
      return 'someone'
  }
}

export const nameOfChat = (chat: Chat): string => ('title' in chat ? (chat.title ?? '') : fullName(chat))

interface NamedAccount {
  readonly first_name?: string
  readonly last_name?: string
  readonly username?: string
}

export function fullName({ first_name, last_name, username }: NamedAccount): string {
  return [first_name, last_name].filter(Boolean).join(' ') || username || 'someone'
}
