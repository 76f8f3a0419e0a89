/** Translates message events to the channel seam. Pure: what an event refers to is given with it. */
import type { IncomingFile, IncomingMessage, Place, QuotedMessage } from '../chat/channel.ts'
import { countOf, listOf, type MatrixEvent, type MatrixJson, objectOf, relationOf, textOf } from './matrix-json.ts'

/** Marks the messages of Molecule bots, with the nonce of the send. */
export const NONCE_FIELD = 'dev.molecule.nonce'
/** The answers to choose from: the key of each reaction with the id of its button. */
export const CHOICES_FIELD = 'dev.molecule.choices'

/** Clients mark a voice note by it. */
const VOICE_FIELD = 'org.matrix.msc3245.voice'
const QUOTED_CHARACTERS_MAX = 2000
/** A server of a sender chooses the time of its messages; one that is far ahead would hide all later ones. */
const AHEAD_MS_MAX = 5 * 60_000
const FILE_TYPES: ReadonlySet<unknown> = new Set(['m.file', 'm.image', 'm.audio', 'm.video'])

export interface MatrixAccount {
  readonly id: string
  readonly name: string
}

export interface MessageContext {
  readonly me: MatrixAccount
  readonly place: Place
  readonly authorName: string
  readonly quoted?: QuotedMessage | undefined
  readonly nowMs: number
  readonly isLive: boolean
  /** Names of commands that `!name` gives, because clients keep `/name` for themselves. */
  readonly commands: ReadonlySet<string>
}

export function toIncomingMessage(event: MatrixEvent, context: MessageContext): IncomingMessage {
  const { me, place, authorName, quoted, nowMs, isLive, commands } = context
  const content = newContentOf(event.content)
  const shown = bodyOf(content, quoted !== undefined)
  return {
    id: event.id,
    place,
    author: { id: event.sender, name: authorName, isBot: isOfBot(event.content) },
    text: withCommand(withoutMention(shown, me), commands),
    isAddressed: place.isDirect || isMentioned(content, shown, me) || quoted?.isOwn === true,
    sentAtMs: Math.min(event.sentAtMs, nowMs + AHEAD_MS_MAX),
    isLive,
    files: filesOf(content),
    ...(quoted !== undefined && { quoted }),
  }
}

/** Programs send notices. Molecule bots send texts, so that people are notified, and mark them. */
const isOfBot = (content: MatrixJson): boolean =>
  content['msgtype'] === 'm.notice' || content[NONCE_FIELD] !== undefined

/** Of an edited message: what it is now. */
const newContentOf = (content: MatrixJson): MatrixJson => {
  const changed = objectOf(content['m.new_content'])
  return textOf(changed['body']) === undefined ? content : changed
}

/** The text as its author typed it; that of a file only if it is a caption. */
function bodyOf(content: MatrixJson, isReply: boolean): string {
  const body = textOf(content['body']) ?? ''
  const filename = textOf(content['filename'])
  if (FILE_TYPES.has(content['msgtype']) && (filename === undefined || filename === body)) return ''
  return isReply ? withoutFallback(body) : body
}

/** Older clients repeat what they reply to, in lines that begin with `> `. */
function withoutFallback(body: string): string {
  const lines = body.split('\n')
  let from = 0
  while (lines[from]?.startsWith('> ')) from++
  if (from > 0 && lines[from] === '') from++
  return lines.slice(from).join('\n')
}

/** The text of a message that another one quotes. */
export const quotedText = (content: MatrixJson): string =>
  withoutFallback(textOf(newContentOf(content)['body']) ?? '').slice(0, QUOTED_CHARACTERS_MAX)

/** Clients of before 2023 send no list of mentions: then the name in the text counts. */
function isMentioned(content: MatrixJson, text: string, { id, name }: MatrixAccount): boolean {
  const mentions = content['m.mentions']
  if (mentions !== undefined) return listOf(objectOf(mentions)['user_ids']).includes(id)
  return text.includes(id) || hasWord(text.toLowerCase(), name.toLowerCase())
}

function hasWord(text: string, word: string): boolean {
  if (word === '') return false
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
    if (!isLetter(text[at - 1]) && !isLetter(text[at + word.length])) return true
  }
  return false
}

const isLetter = (character = ''): boolean => /[\p{L}\p{N}_]/u.test(character)

/** The mention with which a message begins: `Molecule: `, `@molecule:example.org `. */
function withoutMention(text: string, { id, name }: MatrixAccount): string {
  const trimmed = text.trim()
  const lower = trimmed.toLowerCase()
  for (const mention of [id, `@${name}`, name]) {
    if (mention === '' || !lower.startsWith(mention.toLowerCase())) continue
    const rest = trimmed.slice(mention.length)
    if (isLetter(rest[0])) continue
    return rest.replace(/^[:,]/, '').trim()
  }
  return trimmed
}

function withCommand(text: string, commands: ReadonlySet<string>): string {
  const name = /^!(\w{1,20})(?!\w)/.exec(text)?.[1]
  return name !== undefined && commands.has(name) ? `/${text.slice(1)}` : text
}

function filesOf(content: MatrixJson): IncomingFile[] {
  const ref = textOf(content['url'])
  if (!FILE_TYPES.has(content['msgtype']) || ref === undefined || parseMxc(ref) === undefined) return []
  const info = objectOf(content['info'])
  const [mediaType, bytes] = [textOf(info['mimetype']), countOf(info['size'])]
  return [
    {
      ref,
      name: textOf(content['filename']) ?? textOf(content['body']) ?? 'file',
      ...(mediaType !== undefined && { mediaType }),
      ...(bytes !== undefined && { bytes }),
      ...(content[VOICE_FIELD] !== undefined && { isVoice: true }),
    },
  ]
}

/** The server and the id of `mxc://server/id`. */
export function parseMxc(address: string): { readonly server: string; readonly id: string } | undefined {
  const [, server, id] = /^mxc:\/\/([\w.:[\]-]{1,255})\/([\w-]{1,255})$/.exec(address) ?? []
  return server === undefined || id === undefined ? undefined : { server, id }
}

/** The first message of the thread of an event. */
export function threadOf(event: Pick<MatrixEvent, 'content'>): string | undefined {
  const relation = relationOf(event)
  const rootId = textOf(relation['event_id'])
  return relation['rel_type'] === 'm.thread' && isEventId(rootId) ? rootId : undefined
}

/** The message that an event replies to. Messages of a thread carry one for clients without threads: that is no reply. */
export function replyOf(event: Pick<MatrixEvent, 'content'>): string | undefined {
  const relation = relationOf(event)
  const id = textOf(objectOf(relation['m.in_reply_to'])['event_id'])
  return relation['is_falling_back'] === true || !isEventId(id) ? undefined : id
}

/** The event that an edit or a reaction is about. */
export function targetEventOf(event: Pick<MatrixEvent, 'content'>, type: 'm.replace' | 'm.annotation') {
  const relation = relationOf(event)
  const id = textOf(relation['event_id'])
  return relation['rel_type'] === type && isEventId(id) ? id : undefined
}

export const isEventId = (id: string | undefined): id is string => id?.startsWith('$') === true && id.length <= 255
