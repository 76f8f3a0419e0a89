/** What the agent is told of a message besides its text: who speaks, in which place, what is replied to or forwarded. */
import { printableName } from '../../../printable.ts'
import { type ChatOrigin, QUOTED_CHARACTERS_MAX, type QuotedOrigin } from '../../../protocol/chat/from-chat.ts'
import { shorten } from '../../../truncate.ts'
import type { Standing } from '../access.ts'
import type { IncomingMessage, QuotedMessage } from '../channel.ts'

export function originOf(message: IncomingMessage, channel: string, standing: Standing): ChatOrigin {
  const { place, author, quoted, forwardedFrom } = message
  return {
    channel,
    place: place.id,
    place_name: printableName(place.name),
    person: printableName(author.name),
    role: roleOf(author.isBot, standing),
    ...(place.isDirect && { is_direct: true }),
    ...(place.parentId !== undefined && { thread_of: place.parentId }),
    ...(quoted && { quoted: toQuoted(quoted) }),
    ...(forwardedFrom !== undefined && { forwarded_from: printableName(forwardedFrom) }),
  }
}

function roleOf(isBot: boolean, standing: Standing): 'owner' | 'user' | 'bot' {
  if (isBot) return 'bot'
  return standing === 'owner' ? 'owner' : 'user'
}

const toQuoted = ({ messageId, authorName, isOwn, text }: QuotedMessage): QuotedOrigin => ({
  person: printableName(authorName),
  text: shorten(text, QUOTED_CHARACTERS_MAX),
  ...(isOwn && { is_own: true }),
  ...(messageId !== undefined && { message_id: messageId }),
})
