/**
 * The Telegram channel on grammY. The service keeps what people write until the bot confirms it by the offset of its next
 * call, so an update is confirmed only after the door has stored it. A send has no nonce: a lost answer is `unknown`.
 */
import { MoleculeError } from '../../errors.ts'
import { onAbort } from '../../wait.ts'
import type { Channel, ChannelKind, ChannelLimits, ChannelOptions, ReactionState } from '../chat/channel.ts'
import { downloadFile } from '../chat/service-calls.ts'
import { abortSignal, apiRoot, createApi, getAccount, type TelegramLibrary } from './telegram-api.ts'
import { connectError, refusalOf, telegramOutcome } from './telegram-errors.ts'
import { renderTelegram, TELEGRAM_TEXT_CHARS_MAX } from './telegram-html.ts'
import { targetOf } from './telegram-messages.ts'
import { CAPTION_CHARS_MAX, NO_PREVIEW, sendPost } from './telegram-send.ts'
import { keepPolling } from './telegram-updates.ts'

/** The service knows a fixed list of reactions. */
const REACTIONS = { seen: '👀', running: '✍', waiting: '🤔', done: '👍', failed: '👎' } as const satisfies Record<
  ReactionState,
  string
>

const LIMITS: ChannelLimits = {
  textCharactersMax: TELEGRAM_TEXT_CHARS_MAX,
  captionCharactersMax: CAPTION_CHARS_MAX,
  uploadBytesMax: 50 * 1024 * 1024,
  downloadBytesMax: 20 * 1024 * 1024,
  editMs: 3000,
  typingMs: 5000,
  nonceMs: 0,
}

export const telegramKind: ChannelKind = {
  kind: 'telegram',
  tokenVariable: 'TELEGRAM_BOT_TOKEN',
  tokenSteps: [
    'Open https://t.me/BotFather in Telegram and send /newbot.',
    'Choose a name and a username. BotFather answers with the token.',
  ],
  async check(options, signal) {
    const { id, username, can_read_all_group_messages } = await getAccount(
      createApi(options, await import('grammy')),
      signal,
    )
    const privacy =
      'To answer every message of a group: open https://t.me/BotFather, send /setprivacy, choose the bot, click Disable.'
    const steps = [`Open https://t.me/${username} and press Start.`, ...(can_read_all_group_messages ? [] : [privacy])]
    return { account: { id: String(id), name: username }, steps }
  },
  open: async (options) => createTelegramChannel(options, await import('grammy')),
}

function createTelegramChannel(options: ChannelOptions, library: TelegramLibrary): Channel {
  const api = createApi(options, library)
  const closing = new AbortController()
  let polling: Promise<void> = Promise.resolve()
  return {
    limits: LIMITS,
    render: renderTelegram,
    async connect(events, { commands }, signal) {
      onAbort(signal, () => closing.abort())
      const { id, username } = await getAccount(api, signal)
      const menu = commands.map(({ name, text }) => ({ command: name, description: text.slice(0, 256) }))
      try {
        // Updates go either to a webhook or to a poll.
        await api.deleteWebhook({}, abortSignal(signal))
        await api.setMyCommands(menu, {}, abortSignal(signal))
      } catch (error) {
        throw connectError(error)
      }
      polling = keepPolling(api, { events, options, me: { id, username } }, closing.signal)
      return { id: String(id), name: username }
    },
    send: (post, signal) => sendPost(post, { api, library, signal }),
    async edit({ place, messageId, text }, signal) {
      const { chat_id } = targetOf(place)
      const id = Number(messageId)
      const format = { parse_mode: 'HTML' } as const
      try {
        await api
          .editMessageText(chat_id, id, text, { ...format, ...NO_PREVIEW }, abortSignal(signal))
          .catch((error: unknown) => {
            // A message with a file has a caption in place of a text.
            if (!/no text in the message/.test(refusalOf(error)?.description ?? '')) throw error
            const caption = text.length <= CAPTION_CHARS_MAX ? text : ''
            return api.editMessageCaption(chat_id, id, { ...format, caption }, abortSignal(signal))
          })
      } catch (error) {
        if (/message is not modified/.test(refusalOf(error)?.description ?? '')) return { type: 'sent', messageId }
        const outcome = telegramOutcome(error)
        return outcome.type === 'unknown' ? { type: 'failed', error: outcome.error } : outcome
      }
      return { type: 'sent', messageId }
    },
    async typing(place) {
      const { chat_id, ...thread } = targetOf(place)
      await api.sendChatAction(chat_id, 'typing', thread).catch(() => undefined)
    },
    async react({ place, messageId }, state) {
      const { chat_id } = targetOf(place)
      await api
        .setMessageReaction(chat_id, Number(messageId), [{ type: 'emoji', emoji: REACTIONS[state] }])
        .catch(() => undefined)
    },
    async download({ ref }, bytesMax, signal) {
      const { file_path = '', file_size = 0 } = await api.getFile(ref, abortSignal(signal)).catch((error: unknown) => {
        const isLarge = /too big/.test(refusalOf(error)?.description ?? '')
        throw isLarge
          ? tooLarge(bytesMax)
          : new MoleculeError('provider_unreachable', telegramOutcome(error).error, { retryable: true })
      })
      if (file_size > bytesMax) throw tooLarge(bytesMax)
      const url = `${apiRoot(options)}/file/bot${options.token}/${file_path}`
      return downloadFile(url, { bytesMax, service: 'Telegram' }, signal)
    },
    async close() {
      closing.abort()
      await polling
    },
  }
}

function tooLarge(bytesMax: number): MoleculeError {
  return new MoleculeError('too_large', `the file is larger than ${bytesMax} bytes`)
}
