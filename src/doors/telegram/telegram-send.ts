/** Sends one post to Telegram: a text, a file, or an album. The service has no nonce, so nothing is repeated here. */
import type { Api } from 'grammy'
import type { ChatPost, ChatPostFile, SendResult } from '../chat/channel.ts'
import { abortSignal, type TelegramLibrary } from './telegram-api.ts'
import { refusalOf, telegramOutcome } from './telegram-errors.ts'
import { postOptions } from './telegram-messages.ts'

type FileOptions = ReturnType<typeof postOptions> & { readonly caption?: string }

/** The service shrinks photos; a larger image is sent as a file. */
const PHOTO_BYTES_MAX = 5 * 1024 * 1024
const PHOTO_TYPES = ['image/png', 'image/jpeg']
export const CAPTION_CHARS_MAX = 1024
/** A preview of the first link would be longer than most answers. */
export const NO_PREVIEW = { link_preview_options: { is_disabled: true } }

interface SendContext {
  readonly api: Api
  readonly library: TelegramLibrary
  readonly signal: AbortSignal
}

/** One message of the service, where that is possible. A text that is too long for a caption goes before its files. */
export async function sendPost(post: ChatPost, context: SendContext): Promise<SendResult> {
  const { text, files = [] } = post
  if (files.length === 0 || text.length <= CAPTION_CHARS_MAX) return await sendMessage(post, context)
  const first = await sendMessage({ ...post, files: [] }, context)
  if (first.type !== 'sent') return first
  const second = await sendMessage({ place: post.place, nonce: post.nonce, text: '', files }, context)
  // To send all of it again would double the text.
  return second.type === 'sent'
    ? first
    : { type: 'unknown', error: `The text arrived, its file did not: ${second.error}` }
}

async function sendMessage(post: ChatPost, context: SendContext): Promise<SendResult> {
  const options = postOptions(post)
  const { text, files = [] } = post
  const aborted = abortSignal(context.signal)
  try {
    const sent =
      files.length === 0
        ? await context.api.sendMessage(options.chat_id, text, { ...options, ...NO_PREVIEW }, aborted)
        : await sendFiles(files, { ...options, ...(text !== '' && { caption: text }) }, context)
    return { type: 'sent', messageId: String(sent?.message_id) }
  } catch (error) {
    return telegramOutcome(error)
  }
}

/** Several files are one album. One image is a photo, unless the service cannot show it as one. */
async function sendFiles(files: readonly ChatPostFile[], options: FileOptions, context: SendContext) {
  const { api, library, signal } = context
  const { chat_id, caption, parse_mode, ...others } = options
  const text = caption === undefined ? {} : { caption, parse_mode }
  const inputs = files.map(({ name, content }) => new library.InputFile(content, name))
  const [input, ...more] = inputs
  const [file] = files
  if (input === undefined || file === undefined) throw new Error('a post without a file')
  if (more.length > 0) {
    const { reply_markup: _, ...target } = others
    const album = inputs.map((media, index) => ({ type: 'document' as const, media, ...(index === 0 && text) }))
    return (await api.sendMediaGroup(chat_id, album, target, abortSignal(signal)))[0]
  }
  const isPhoto = PHOTO_TYPES.includes(file.mediaType ?? '') && file.content.length <= PHOTO_BYTES_MAX
  try {
    if (isPhoto) return await api.sendPhoto(chat_id, input, { ...others, ...text }, abortSignal(signal))
  } catch (error) {
    if (refusalOf(error)?.error_code !== 400) throw error
  }
  return await api.sendDocument(
    chat_id,
    new library.InputFile(file.content, file.name),
    { ...others, ...text },
    abortSignal(signal),
  )
}
