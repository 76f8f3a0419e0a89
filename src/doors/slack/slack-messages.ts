/** Translates between the objects of Slack's API and the channel seam. A message is named by its channel and its time stamp. */
import type { Author, ChatButton, ChatPost, IncomingFile, IncomingMessage, Place, SoughtPost } from '../chat/channel.ts'

/** A message of the API or of an event. */
export interface SlackMessage {
  readonly ts: string
  readonly thread_ts?: string
  readonly parent_user_id?: string
  readonly subtype?: string
  readonly user?: string
  readonly bot_id?: string
  readonly username?: string
  readonly text?: string
  readonly files?: readonly SlackFile[]
  readonly attachments?: readonly SlackAttachment[]
  readonly metadata?: { readonly event_type: string; readonly event_payload: { readonly nonce?: string } }
  readonly latest_reply?: string
  readonly reply_count?: number
}

interface SlackFile {
  readonly id: string
  readonly name?: string | null
  readonly mimetype?: string
  /** `slack_audio`: recorded with the button for audio clips. */
  readonly subtype?: string
  readonly size?: number
  readonly url_private?: string
  readonly url_private_download?: string
}

interface SlackAttachment {
  readonly is_share?: boolean
  readonly author_name?: string
  readonly text?: string
}

/** The bot's own account. */
export interface SlackSelf {
  readonly userId: string
  readonly botId?: string
}

/** All others are notes of the service: joins, topics, pins. */
const WRITTEN_SUBTYPES: readonly (string | undefined)[] = [
  ...[undefined, 'file_share', 'thread_broadcast', 'bot_message', 'me_message'],
]
export const METADATA_TYPE = 'molecule_message'
const SECTION_CHARACTERS_MAX = 3000
const BUTTON_CHARACTERS_MAX = 75

export const placeId = (channel: string, threadTs: string): string => `${channel}/${threadTs}`

/** The channel of a place, and its thread where it is one. */
export function readPlaceId(id: string): { channel: string; thread_ts?: string } {
  const [channel = '', thread_ts] = id.split('/')
  return thread_ts === undefined ? { channel } : { channel, thread_ts }
}

export const isDirectChannel = (channel: string): boolean => channel.startsWith('D')

/** The thread of a message; undefined for the message that the thread hangs on. */
export const threadOf = ({ ts, thread_ts }: SlackMessage): string | undefined =>
  thread_ts === ts ? undefined : thread_ts

export const timeOfTs = (ts: string): number => Math.floor(Number(ts) * 1000)
export const tsOfTime = (ms: number): string => (ms / 1000).toFixed(6)

export const isWritten = ({ subtype }: SlackMessage): boolean => WRITTEN_SUBTYPES.includes(subtype)

export const isOwn = ({ user, bot_id }: SlackMessage, me: SlackSelf): boolean =>
  user === me.userId || (bot_id !== undefined && bot_id === me.botId)

export function toIncomingMessage(
  message: SlackMessage,
  { author, place, me }: { readonly author: Author; readonly place: Place; readonly me: SlackSelf },
): IncomingMessage {
  const { ts, text = '', files = [], attachments = [], parent_user_id } = message
  const shared = attachments.find(({ is_share }) => is_share === true)
  const mention = `<@${me.userId}>`
  const own = readable(text.replaceAll(mention, ' ')).trim()
  const all = shared === undefined ? own : [own, readable(shared.text ?? '')].filter((one) => one !== '').join('\n\n')
  return {
    id: `${readPlaceId(place.id).channel}/${ts}`,
    messageId: ts,
    place,
    author,
    text: all,
    isAddressed: place.isDirect || text.includes(mention) || parent_user_id === me.userId,
    sentAtMs: timeOfTs(ts),
    files: files.flatMap(toFile),
    ...(shared && { forwardedFrom: shared.author_name ?? 'Slack' }),
  }
}

function toFile({ name, mimetype, subtype, size, url_private, url_private_download }: SlackFile): IncomingFile[] {
  const ref = url_private_download ?? url_private
  if (ref === undefined) return []
  const isVoice = subtype === 'slack_audio'
  return [
    {
      ref,
      name: name ?? 'file',
      ...(mimetype && { mediaType: mimetype }),
      ...(size && { bytes: size }),
      ...(isVoice && { isVoice }),
    },
  ]
}

/** As a person reads it: links and mentions without their signs, and no escapes. */
export function readable(text: string): string {
  let out = ''
  let from = 0
  for (let start = text.indexOf('<'); start !== -1; start = text.indexOf('<', from)) {
    const end = text.indexOf('>', start)
    if (end === -1) break
    out += text.slice(from, start) + readableSign(text.slice(start + 1, end))
    from = end + 1
  }
  return (out + text.slice(from)).replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

/** Of `@U1|ada`, `#C1|general`, `!here`, `https://e.org|name`. */
function readableSign(sign: string): string {
  const bar = sign.indexOf('|')
  const [target, label] = bar === -1 ? [sign, undefined] : [sign.slice(0, bar), sign.slice(bar + 1)]
  if (target.startsWith('@') || target.startsWith('#')) return `${target.slice(0, 1)}${label ?? target.slice(1)}`
  if (target.startsWith('!')) return `@${label ?? target.slice(1)}`
  return label === undefined || label === target ? target : `${label} (${target})`
}

/** The fields of a new message. Its metadata are invisible, and find it again when the answer to the send is lost. */
export function messageBody({ place, text, buttons = [], nonce }: ChatPost): object {
  return {
    ...readPlaceId(place),
    text,
    mrkdwn: true,
    unfurl_links: false,
    unfurl_media: false,
    metadata: { event_type: METADATA_TYPE, event_payload: { nonce } },
    ...(buttons.length > 0 && { blocks: blocksOf(text, buttons) }),
  }
}

/** With blocks the text alone is only for notifications, so it stands in the blocks too. */
export function blocksOf(text: string, buttons: readonly ChatButton[]): readonly object[] {
  const sections = sectionsOf(text).map((part) => ({ type: 'section', text: { type: 'mrkdwn', text: part } }))
  const elements = buttons.map(({ id, label, style }, index) => ({
    type: 'button',
    action_id: `button-${index}`,
    value: id,
    text: { type: 'plain_text', text: label.slice(0, BUTTON_CHARACTERS_MAX) },
    ...(style !== 'plain' && { style: style === 'good' ? 'primary' : 'danger' }),
  }))
  return elements.length === 0 ? sections : [...sections, { type: 'actions', elements }]
}

function sectionsOf(text: string): string[] {
  const sections: string[] = []
  for (let rest = text; rest.trim() !== ''; ) {
    const line = rest.length <= SECTION_CHARACTERS_MAX ? rest.length : rest.lastIndexOf('\n', SECTION_CHARACTERS_MAX)
    const end = line <= 0 ? SECTION_CHARACTERS_MAX : line
    sections.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return sections
}

/** The nonce tells equal texts apart. A message with files has none: its files do. */
export function isCopy(sent: SlackMessage, { nonce, sinceMs, files = [], text }: SoughtPost): boolean {
  if (sent.metadata?.event_type === METADATA_TYPE) return sent.metadata.event_payload.nonce === nonce
  if (timeOfTs(sent.ts) < sinceMs) return false
  const names = (sent.files ?? []).map(({ name }) => name)
  return (
    files.length > 0 && files.every((file) => names.includes(file.name)) && readable(sent.text ?? '') === readable(text)
  )
}
