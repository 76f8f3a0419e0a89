/**
 * The Bot API of the fake Telegram: what each method checks and does. A refusal has the code and the words of the real
 * service.
 */
import { EntityError, parseTelegramHtml, type TelegramEntity } from './html.ts'

const TEXT_CHARS_MAX = 4096
const CAPTION_CHARS_MAX = 1024
const CALLBACK_DATA_BYTES_MAX = 64
const CALLBACK_TEXT_CHARS_MAX = 200
const DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
/** The reactions that the service knows, of those that a bot would use. */
const REACTIONS = new Set(
  '👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 💩 🙏 👌 🤡 💯 ⚡ 🏆 💔 🤨 😐 😴 😭 🤓 👻 👀 🤝 ✍ 🤗 🆒'.split(' '),
)
const CHAT_ACTIONS = new Set(['typing', 'upload_document', 'upload_photo'])

export interface TelegramUser {
  readonly id: number
  readonly is_bot: boolean
  readonly first_name: string
  readonly username?: string
}

export interface TelegramChat {
  readonly id: number
  readonly type: 'private' | 'supergroup'
  readonly title?: string
  readonly first_name?: string
  readonly is_forum?: boolean
}

interface KeyboardButton {
  readonly text: string
  readonly callback_data: string
}

export interface TelegramFile {
  readonly id: string
  readonly name: string
  readonly content: Uint8Array
}

export interface TelegramMessage {
  readonly message_id: number
  readonly date: number
  readonly chat: TelegramChat
  readonly from: TelegramUser
  readonly message_thread_id?: number
  readonly is_topic_message?: true
  text?: string
  caption?: string
  entities?: readonly TelegramEntity[]
  caption_entities?: readonly TelegramEntity[]
  reply_markup?: { readonly inline_keyboard: readonly (readonly KeyboardButton[])[] }
  readonly reply_to_message?: TelegramMessage
  readonly document?: {
    readonly file_id: string
    readonly file_name: string
    readonly mime_type?: string
    readonly file_size: number
  }
  readonly voice?: {
    readonly file_id: string
    readonly duration: number
    readonly mime_type?: string
    readonly file_size: number
  }
  readonly forward_origin?: { readonly type: 'hidden_user'; readonly sender_user_name: string; readonly date: number }
  readonly media_group_id?: string
  edit_date?: number
  readonly photo?: readonly { readonly file_id: string; readonly file_size: number }[]
}

// biome-ignore lint/suspicious/noExplicitAny: parameters of many methods; each reads what it needs
export type Parameters = Record<string, any>

interface ErrorParameters {
  readonly retry_after?: number
  readonly migrate_to_chat_id?: number
}

export class BotApiError extends Error {
  readonly code: number
  readonly parameters: ErrorParameters | undefined

  constructor(code: number, description: string, parameters?: ErrorParameters) {
    super(description)
    this.code = code
    this.parameters = parameters
  }
}

const badRequest = (problem: string) => new BotApiError(400, `Bad Request: ${problem}`)

export class TelegramWorld {
  readonly token = '123456789:AAfake-telegram-token-for-tests-only'
  readonly bot: TelegramUser = { id: 123456789, is_bot: true, first_name: 'Molecule', username: 'molecule_test_bot' }
  readsGroups = true
  mayAttach = true
  mayEdit = true
  readonly chats = new Map<number, TelegramChat>()
  readonly topics = new Set<string>()
  readonly blocked = new Set<number>()
  /** Groups that became supergroups: the new id of each. */
  readonly moved = new Map<number, number>()
  readonly messages: TelegramMessage[] = []
  readonly files = new Map<string, TelegramFile>()
  /** The reaction of the bot by `<chat> <message>`. */
  readonly reactions = new Map<string, string>()
  readonly edits = new Map<string, number>()
  readonly typings: string[] = []
  readonly queries = new Map<string, (text: string) => void>()
  commands: readonly { readonly command: string }[] = []
  /** Only an administrator of a group hears of its reactions. */
  isAdministrator = true
  #number = 1000

  next(): number {
    this.#number += 1
    return this.#number
  }

  /** The event of a person's reaction, without the thread of its message; undefined where the bot does not hear of it. */
  reactionOf({ chatId, messageId, user }: { chatId: number; messageId: number; user: TelegramUser }, emoji: string) {
    if (!REACTIONS.has(emoji)) throw new Error(`Telegram has no reaction ${emoji}`)
    const chat = this.chats.get(chatId)
    if (chat?.type !== 'private' && !this.isAdministrator) return undefined
    const new_reaction = [{ type: 'emoji', emoji }]
    return { chat, message_id: messageId, user, date: Math.floor(Date.now() / 1000), old_reaction: [], new_reaction }
  }

  /** Runs a method; throws `BotApiError`. */
  call(method: string, parameters: Parameters, files: ReadonlyMap<string, TelegramFile>): unknown {
    switch (method) {
      case 'getMe':
        return { ...this.bot, can_join_groups: true, can_read_all_group_messages: this.readsGroups }
      case 'deleteWebhook':
        return true
      case 'setMyCommands':
        return this.#setCommands(parameters)
      case 'sendMessage':
        return this.#sendMessage(parameters)
      case 'editMessageText':
        return this.#editMessageText(parameters)
      case 'editMessageCaption':
        return this.#editMessageCaption(parameters)
      case 'sendChatAction':
        return this.#sendChatAction(parameters)
      case 'setMessageReaction':
        return this.#setReaction(parameters)
      case 'sendDocument':
      case 'sendPhoto':
        return this.#sendFile(method, parameters, files)
      case 'sendMediaGroup':
        return asList(parameters['media']).map(({ media, caption, parse_mode }, index) =>
          this.#sendFile(
            'sendDocument',
            { ...parameters, document: media, caption, parse_mode: index === 0 ? parse_mode : undefined },
            files,
          ),
        )
      case 'getFile':
        return this.#getFile(parameters)
      case 'answerCallbackQuery':
        return this.#answerQuery(parameters)
      default:
        throw new BotApiError(404, 'Not Found: method not found')
    }
  }

  addMessage(message: Omit<TelegramMessage, 'message_id' | 'date'> & { readonly date?: number }): TelegramMessage {
    const added = { message_id: this.next(), date: Math.floor(Date.now() / 1000), ...message }
    this.messages.push(added)
    return added
  }

  find(chatId: number, messageId: number): TelegramMessage | undefined {
    return this.messages.find(({ chat, message_id }) => chat.id === chatId && message_id === messageId)
  }

  #setCommands({ commands }: Parameters): true {
    for (const { command, description } of commands) {
      if (!/^[a-z0-9_]{1,32}$/.test(command)) throw badRequest('BOT_COMMAND_INVALID')
      if (description.length < 1 || description.length > 256) throw badRequest('BOT_COMMAND_DESCRIPTION_INVALID')
    }
    this.commands = commands
    return true
  }

  /** The chat and topic of a new message. */
  #target(parameters: Parameters): Pick<TelegramMessage, 'chat' | 'from' | 'message_thread_id' | 'reply_to_message'> {
    const chat = this.chats.get(Number(parameters['chat_id']))
    if (chat === undefined) throw badRequest('chat not found')
    const movedTo = this.moved.get(chat.id)
    if (movedTo !== undefined)
      throw new BotApiError(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
        migrate_to_chat_id: movedTo,
      })
    if (this.blocked.has(chat.id)) throw new BotApiError(403, 'Forbidden: bot was blocked by the user')
    const thread = parameters['message_thread_id']
    if (thread !== undefined && !this.topics.has(`${chat.id}/${thread}`)) throw badRequest('message thread not found')
    const reply = asObject(parameters['reply_parameters'])
    const replied = reply['message_id'] === undefined ? undefined : this.find(chat.id, reply['message_id'])
    if (reply['message_id'] !== undefined && !replied && !reply['allow_sending_without_reply']) {
      throw badRequest('message to be replied not found')
    }
    return {
      chat,
      from: this.bot,
      ...(thread !== undefined && { message_thread_id: Number(thread), is_topic_message: true }),
      ...(replied && { reply_to_message: replied }),
    }
  }

  #sendMessage(parameters: Parameters): TelegramMessage {
    const target = this.#target(parameters)
    return this.addMessage({ ...target, ...readText(parameters, 'text', TEXT_CHARS_MAX), ...readKeyboard(parameters) })
  }

  #editMessageText(parameters: Parameters): TelegramMessage {
    const message = this.find(Number(parameters['chat_id']), Number(parameters['message_id']))
    if (message === undefined || !this.mayEdit) throw badRequest('message to edit not found')
    if (message.from.id !== this.bot.id) throw badRequest("message can't be edited")
    if (message.text === undefined) throw badRequest('there is no text in the message to edit')
    const { text = '', entities } = readText(parameters, 'text', TEXT_CHARS_MAX)
    const { reply_markup } = readKeyboard(parameters)
    const same = [message.text, message.entities, message.reply_markup].map((value) => JSON.stringify(value))
    if (String(same) === String([text, entities, reply_markup].map((value) => JSON.stringify(value)))) {
      throw badRequest(
        'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
      )
    }
    message.text = text
    if (entities) message.entities = entities
    if (reply_markup) message.reply_markup = reply_markup
    else delete message.reply_markup
    const key = `${message.chat.id} ${message.message_id}`
    this.edits.set(key, (this.edits.get(key) ?? 0) + 1)
    return message
  }

  #editMessageCaption(parameters: Parameters): TelegramMessage {
    const message = this.find(Number(parameters['chat_id']), Number(parameters['message_id']))
    if (message?.document === undefined && message?.photo === undefined) throw badRequest('message to edit not found')
    message.caption = readText(parameters, 'caption', CAPTION_CHARS_MAX).caption
    const { reply_markup } = readKeyboard(parameters)
    if (reply_markup) message.reply_markup = reply_markup
    else delete message.reply_markup
    return message
  }

  #sendChatAction(parameters: Parameters): true {
    const { chat, message_thread_id } = this.#target(parameters)
    if (!CHAT_ACTIONS.has(parameters['action'])) throw badRequest('wrong parameter action in request')
    this.typings.push(message_thread_id === undefined ? String(chat.id) : `${chat.id}/${message_thread_id}`)
    return true
  }

  #setReaction(parameters: Parameters): true {
    const key = `${parameters['chat_id']} ${parameters['message_id']}`
    if (!this.find(Number(parameters['chat_id']), Number(parameters['message_id'])))
      throw badRequest('message to react not found')
    const [reaction, ...more] = parameters['reaction'] ?? []
    if (more.length > 0) throw badRequest('REACTIONS_TOO_MANY')
    if (reaction === undefined) this.reactions.delete(key)
    else if (REACTIONS.has(reaction.emoji)) this.reactions.set(key, reaction.emoji)
    else throw badRequest('REACTION_INVALID')
    return true
  }

  #sendFile(
    method: 'sendDocument' | 'sendPhoto',
    parameters: Parameters,
    files: ReadonlyMap<string, TelegramFile>,
  ): TelegramMessage {
    const target = this.#target(parameters)
    if (!this.mayAttach) throw badRequest('not enough rights to send documents to the chat')
    const field = method === 'sendPhoto' ? 'photo' : 'document'
    const file = files.get(String(parameters[field]).replace('attach://', ''))
    if (file === undefined) throw badRequest('invalid file HTTP URL specified: Unsupported URL protocol')
    if (file.content.length === 0) throw badRequest('file must be non-empty')
    const isImage = file.content[0] === 0x89 || file.content[0] === 0xff
    if (field === 'photo' && !isImage) throw badRequest('IMAGE_PROCESS_FAILED')
    this.files.set(file.id, file)
    const caption = parameters['caption'] ? readText(parameters, 'caption', CAPTION_CHARS_MAX) : {}
    const size = file.content.length
    return this.addMessage({
      ...target,
      ...caption,
      ...readKeyboard(parameters),
      ...(field === 'photo'
        ? { photo: [{ file_id: file.id, file_size: size }] }
        : { document: { file_id: file.id, file_name: file.name, file_size: size } }),
    })
  }

  #getFile(parameters: Parameters): object {
    const file = this.files.get(parameters['file_id'])
    if (file === undefined) throw badRequest('wrong file_id or the file is temporarily unavailable')
    if (file.content.length > DOWNLOAD_BYTES_MAX) throw badRequest('file is too big')
    const { id, content } = file
    return { file_id: id, file_unique_id: id, file_size: content.length, file_path: `documents/${id}` }
  }

  #answerQuery(parameters: Parameters): true {
    const text = String(parameters['text'] ?? '')
    const answered = this.queries.get(parameters['callback_query_id'])
    if (answered === undefined) throw badRequest('query is too old and response timeout expired or query ID is invalid')
    if (text.length > CALLBACK_TEXT_CHARS_MAX) throw badRequest('MESSAGE_TOO_LONG')
    this.queries.delete(parameters['callback_query_id'])
    answered(text)
    return true
  }
}

/** Forms carry objects as JSON. */
function asObject(value: unknown): Parameters {
  return typeof value === 'string' ? JSON.parse(value) : ((value as Parameters | undefined) ?? {})
}

function asList(value: unknown): Parameters[] {
  return typeof value === 'string' ? JSON.parse(value) : (value as Parameters[])
}

function readText(
  parameters: Parameters,
  field: 'text' | 'caption',
  charactersMax: number,
): Pick<TelegramMessage, 'text' | 'caption' | 'entities'> {
  const source = String(parameters[field] ?? '')
  const mode = parameters['parse_mode']
  if (mode !== undefined && mode !== 'HTML') throw badRequest('unsupported parse_mode')
  try {
    const { text, entities } = mode === 'HTML' ? parseTelegramHtml(source) : { text: source, entities: [] }
    const shown = text.trim()
    if (shown === '') throw badRequest(`message ${field} is empty`)
    if (shown.length > charactersMax) throw badRequest(`message ${field === 'text' ? '' : 'caption '}is too long`)
    return { [field]: shown, entities }
  } catch (error) {
    if (error instanceof EntityError) throw badRequest(`can't parse entities: ${error.message}`)
    throw error
  }
}

function readKeyboard(parameters: Parameters): Pick<TelegramMessage, 'reply_markup'> {
  const { inline_keyboard = [] } = asObject(parameters['reply_markup'])
  if (inline_keyboard.length === 0) return {}
  for (const { text, callback_data } of inline_keyboard.flat()) {
    if (!text) throw badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if (Buffer.byteLength(callback_data) > CALLBACK_DATA_BYTES_MAX) throw badRequest('BUTTON_DATA_INVALID')
  }
  return { reply_markup: { inline_keyboard } }
}
