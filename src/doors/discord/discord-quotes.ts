/** What a message of Discord refers to: the message that it replies to, and a forwarded one. */
import type { APIAttachment, APIMessage, APIUser } from 'discord.js'
import type { IncomingFile, QuotedMessage } from '../chat/channel.ts'

export interface DiscordSelf {
  readonly id: string
  readonly roleId: string | undefined
}

/** Undefined also where the message was deleted. Discord has no quotes of a part. */
export function toQuoted({ referenced_message }: APIMessage, me: DiscordSelf): QuotedMessage | undefined {
  if (!referenced_message) return undefined
  const { id, author, content, mentions, attachments } = referenced_message
  const text = readableText(content, mentions, me)
  return {
    messageId: id,
    authorName: author.global_name ?? author.username,
    isOwn: author.id === me.id,
    text: text === '' ? attachments.map(({ filename }) => filename).join(', ') : text,
  }
}

interface Forwarded {
  readonly text: string
  readonly files: readonly IncomingFile[]
  readonly forwardedFrom: string
}

/** A forward is a copy without its author: the service shows the text and the files alone. */
export function readForwarded({ message_snapshots }: APIMessage, me: DiscordSelf): Forwarded | undefined {
  const snapshot = message_snapshots?.[0]?.message
  if (snapshot === undefined) return undefined
  const { content, mentions, attachments } = snapshot
  return {
    text: readableText(content, mentions, me),
    files: attachments.map(toFile),
    forwardedFrom: 'another message on Discord',
  }
}

export const toFile = ({ filename, url, size, content_type }: APIAttachment): IncomingFile => ({
  ref: url,
  name: filename,
  bytes: size,
  ...(content_type !== undefined && { mediaType: content_type }),
})

/** Removes mentions of the bot and shows other people by name. */
export function readableText(content: string, mentions: readonly APIUser[], me: DiscordSelf): string {
  const names = new Map(mentions.map((user) => [user.id, user.global_name ?? user.username]))
  return content
    .replaceAll(/<@(!?|&)(\d+)>/g, (mention, kind: string, id: string) => {
      if (id === (kind === '&' ? me.roleId : me.id)) return ''
      const name = kind === '&' ? undefined : names.get(id)
      return name === undefined ? mention : `@${name}`
    })
    .trim()
}
