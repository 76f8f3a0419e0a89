/**
 * Where a message of a chat comes from: who speaks, in which place, what is replied to or forwarded. The chat door writes it
 * into `metadata.chat`; what a model reads of it is made here and nowhere else.
 * Invariant: only the platform writes the block of `TAG`. In every other text of a prompt the tag is broken up, so a person
 * cannot speak in the name of another one.
 */
import { printableName, withoutControls } from '../../printable.ts'
import { shorten } from '../../truncate.ts'
import type { Message, Part } from '../a2a.ts'
import { isJsonObject, type JsonObject, stringOf } from '../json.ts'
import { textOf } from '../part.ts'
import type { Sender } from '../request.ts'

/** `metadata.chat` of a message. A type, not an interface: it is JSON. */
export type ChatOrigin = {
  readonly channel: string
  readonly place: string
  readonly place_name: string
  /** The name of the author. Its id is that of the sender. */
  readonly person: string
  readonly role?: ChatSpeakerRole
  /** A direct chat with one person. */
  readonly is_direct?: true
  /** Of a thread: the place that it is in. */
  readonly thread_of?: string
  readonly quoted?: QuotedOrigin
  readonly forwarded_from?: string
}

export type ChatSpeakerRole = 'owner' | 'user' | 'bot'

export type QuotedOrigin = {
  readonly person: string
  /** The agent itself wrote it. */
  readonly is_own?: true
  readonly text: string
  readonly message_id?: string
}

/** A longer quote is cut: the agent has most of them in its history. */
export const QUOTED_CHARACTERS_MAX = 1000

const TAG = 'from_chat'
const TAG_IN_TEXT = /<(?=\/?from_chat)/gi

/**
 * The parts as a model reads them: the text begins with a block that says where it comes from. A direct chat needs none, unless
 * the message replies to another one or was forwarded. Without a block the parts stay as they are.
 */
export function partsWithOrigin(
  { parts, metadata }: Pick<Message, 'parts' | 'metadata'>,
  sender: Sender,
): readonly Part[] {
  const text = textOf(parts)
  const block = blockOf(metadata?.['chat'], sender)
  const safe = withoutTag(text)
  // A tag may be spread over two parts.
  if (block === undefined && safe === text) return parts
  const before = block === undefined ? '' : `${block}\n\n`
  return [{ text: `${before}${safe}` }, ...parts.filter((part) => part.text === undefined)]
}

const withoutTag = (text: string): string => text.replaceAll(TAG_IN_TEXT, '< ')

function blockOf(chat: unknown, sender: Sender): string | undefined {
  // Callers of other doors write what they like into the metadata of their messages.
  if (sender.channel === undefined || !isJsonObject(chat)) return undefined
  const lines = [...(chat['is_direct'] === true ? [] : speakerLines(chat, sender)), ...contextLines(chat)]
  return lines.length === 0 ? undefined : [`<${TAG}>`, ...lines, `</${TAG}>`].join('\n')
}

function speakerLines(chat: JsonObject, { id }: Sender): string[] {
  const role = stringOf(chat['role'])
  const from = [named(chat['person']), ...(isRole(role) ? [role] : []), `id ${named(id)}`].join(', ')
  return [`from: ${from}`, `${chat['thread_of'] === undefined ? 'chat' : 'thread'}: ${named(chat['place_name'])}`]
}

function contextLines({ quoted, forwarded_from: forwardedFrom }: JsonObject): string[] {
  const forwarded = forwardedFrom === undefined ? [] : [`forwarded from: ${named(forwardedFrom)}`]
  if (!isJsonObject(quoted)) return forwarded
  const text = shorten(stringOf(quoted['text']), QUOTED_CHARACTERS_MAX)
  const quote = withoutTag(withoutControls(text)).split('\n')
  return [
    `reply to: ${quoted['is_own'] === true ? 'you' : named(quoted['person'])}`,
    ...quote.map((line) => `> ${line}`),
    ...forwarded,
  ]
}

const isRole = (role: string): role is ChatSpeakerRole => role === 'owner' || role === 'user' || role === 'bot'

/** In quotes and on one line: a name cannot look like another field. */
const named = (name: unknown): string => JSON.stringify(withoutTag(printableName(stringOf(name))))
