/** The events that the bot sends: texts, files, edits, reactions. No event of the bot notifies anyone by a mention. */
import type { ChatButton, ChatPost, ChatPostFile } from '../chat/channel.ts'
import { matrixText } from './matrix-html.ts'
import { listOf, type MatrixJson, objectOf, textOf } from './matrix-json.ts'
import { CHOICES_FIELD, NONCE_FIELD } from './matrix-messages.ts'

/** Of the text that clients without edits show. */
const EDIT_FALLBACK_CHARACTERS_MAX = 1000

const NO_MENTIONS = { 'm.mentions': {} }

export interface Choice {
  /** The reaction. */
  readonly key: string
  readonly id: string
  readonly label: string
}

const STYLE_KEYS = { good: '👍', plain: '🔁', bad: '👎' } as const
const NUMBER_KEYS = ['1️⃣', '2️⃣', '3️⃣', '4️⃣', '5️⃣', '6️⃣', '7️⃣', '8️⃣', '9️⃣', '🔟'] as const

/** The service has no buttons: each is a reaction. By what it means, where that tells them apart; else a number. */
export function choicesOf(buttons: readonly ChatButton[]): readonly Choice[] {
  const keys = buttons.map(({ style }) => STYLE_KEYS[style])
  const areDistinct = new Set(keys).size === keys.length
  return buttons
    .slice(0, NUMBER_KEYS.length)
    .map(({ id, label }, index) => ({ id, label, key: (areDistinct ? keys : NUMBER_KEYS)[index] ?? '' }))
}

/** The choices that an own event carries. */
export const choicesIn = (content: MatrixJson): readonly Choice[] =>
  listOf(content[CHOICES_FIELD]).flatMap((value) => {
    const [key, id, label] = ['key', 'id', 'label'].map((field) => textOf(objectOf(value)[field]))
    return key === undefined || id === undefined ? [] : [{ key, id, label: label ?? '' }]
  })

/** Without the tone of a skin and without the mark for a coloured picture, which clients set as they like. */
export const plainEmoji = (key: string): string => key.replaceAll(/[\u{1f3fb}-\u{1f3ff}\ufe0f]/gu, '')

export function textContent({ text, buttons = [], nonce, replyTo }: ChatPost, rootId: string | undefined): object {
  const choices = choicesOf(buttons)
  const hint = choices.map(({ key, label }) => `${key} ${label}`).join('   ')
  const shown = choices.length === 0 ? text : `${text}\n\nReact: ${hint}`
  return {
    msgtype: 'm.text',
    ...matrixText(shown),
    ...NO_MENTIONS,
    ...relationTo(rootId, replyTo),
    [NONCE_FIELD]: nonce,
    ...(choices.length > 0 && { [CHOICES_FIELD]: choices }),
  }
}

export function fileContent(
  { name, mediaType = 'application/octet-stream', content }: ChatPostFile,
  { address, nonce, rootId }: { readonly address: string; readonly nonce: string; readonly rootId: string | undefined },
): object {
  return {
    msgtype: mediaType.startsWith('image/') ? 'm.image' : 'm.file',
    body: name,
    filename: name,
    url: address,
    info: { mimetype: mediaType, size: content.length },
    ...NO_MENTIONS,
    ...relationTo(rootId, undefined),
    [NONCE_FIELD]: nonce,
  }
}

/** A short answer to one person; a notice, so that no bot answers it. */
export const noticeContent = (markdown: string, target: { rootId?: string | undefined; replyTo?: string }): object => ({
  msgtype: 'm.notice',
  ...matrixText(markdown),
  ...NO_MENTIONS,
  ...relationTo(target.rootId, target.replyTo),
})

export function editContent(messageId: string, text: string): object {
  const shown = matrixText(text)
  return {
    msgtype: 'm.text',
    // Whole, it would double the size of the event.
    body: `* ${shown.body.slice(0, EDIT_FALLBACK_CHARACTERS_MAX).toWellFormed()}`,
    ...NO_MENTIONS,
    'm.new_content': { msgtype: 'm.text', ...shown, ...NO_MENTIONS },
    'm.relates_to': { rel_type: 'm.replace', event_id: messageId },
  }
}

export const reactionContent = (messageId: string, key: string): object => ({
  'm.relates_to': { rel_type: 'm.annotation', event_id: messageId, key },
})

/** Clients without threads show a message of a thread as a reply. */
function relationTo(rootId: string | undefined, replyTo: string | undefined): object {
  const reply = (eventId: string) => ({ 'm.in_reply_to': { event_id: eventId } })
  if (rootId === undefined) return replyTo === undefined ? {} : { 'm.relates_to': reply(replyTo) }
  const thread = { rel_type: 'm.thread', event_id: rootId, is_falling_back: replyTo === undefined }
  return { 'm.relates_to': { ...thread, ...reply(replyTo ?? rootId) } }
}
