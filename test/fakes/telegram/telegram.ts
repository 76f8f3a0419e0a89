/**
 * A fake Telegram on loopback: the Bot API with long polling as the real library speaks it, and the people who write to
 * the bot. Updates stay until a later `getUpdates` confirms them by its offset.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import type { ChatService, Said, SaidFile, Written } from '../chat-service.ts'
import { type CallCounts, createCallCounts } from '../windows.ts'
import {
  BotApiError,
  type Parameters,
  type TelegramChat,
  type TelegramFile,
  type TelegramMessage,
  type TelegramUser,
  TelegramWorld,
} from './bot-api.ts'
import { createUpdates, send, sendError } from './updates.ts'

const STATES: Readonly<Record<string, string>> = {
  '👀': 'seen',
  '✍': 'running',
  '🤔': 'waiting',
  '👍': 'done',
  '👎': 'failed',
}
const ADA: Author = { id: '222', name: 'ada', isBot: false }

/**
 * `lost_answer`: the call succeeds, and the connection ends without an answer. `no_answer`: it succeeds, and the connection
 * stays open without one. `lost_request`: nothing happens.
 */
export type TelegramFault =
  | 'lost_answer'
  | 'no_answer'
  | 'lost_request'
  | 'html_502'
  | { readonly status: number; readonly description: string }
  | { readonly retryAfterS: number }

export interface FakeTelegram extends ChatService {
  readonly world: TelegramWorld
  readonly calls: readonly { readonly method: string; readonly parameters: Parameters }[]
  /** The next call of this method fails. */
  fail(method: string, fault: TelegramFault): void
  /** Another program polls with the same token: the waiting call of the bot ends with 409. */
  pollElsewhere(): void
  addUpdate(update: object): void
  /** A group becomes a supergroup, and has another id. Unannounced: no update says so. */
  moveGroup(group: Place, options?: { readonly isAnnounced: boolean }): Place
  /** The updates that are not confirmed. */
  unconfirmed(): readonly number[]
}

export async function startTelegram(): Promise<FakeTelegram> {
  const world = new TelegramWorld()
  const calls: { method: string; parameters: Parameters }[] = []
  const faults: { method: RegExp; fault: TelegramFault }[] = []
  const polls = createUpdates()
  const counts = createCallCounts()
  let secondMs: number | undefined
  let refusals = 0
  let downloads = Promise.resolve()
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const [, kind, token, rest = ''] = /^\/(bot|file\/bot)([^/]+)\/(.+)$/.exec(request.url ?? '') ?? []
    const { parameters, files } = await readParameters(request)
    if (token !== world.token) return sendError(response, new BotApiError(401, 'Unauthorized'))
    if (kind === 'file/bot') {
      await downloads
      return sendFile(response, world.files.get(rest.split('/')[1] ?? ''))
    }
    calls.push({ method: rest, parameters })
    const index = faults.findIndex(({ method }) => method.test(rest))
    const fault = index === -1 ? undefined : faults.splice(index, 1)[0]?.fault
    if (fault === 'lost_request') return request.socket.destroy()
    if (fault === 'html_502') return response.writeHead(502).end('<html>502 Bad Gateway</html>')
    if (typeof fault === 'object') return sendError(response, toError(fault))
    if (rest === 'getUpdates') return polls.poll(parameters, response)
    const waitMs = secondMs === undefined ? 0 : limitOf(rest, parameters, { counts, secondMs })
    if (waitMs > 0) {
      refusals += 1
      return sendError(response, toError({ retryAfterS: waitMs / 1000 }))
    }
    try {
      const result = world.call(rest, parameters, files)
      if (fault === 'lost_answer') return request.socket.destroy()
      if (fault === 'no_answer') return
      send(response, 200, { ok: true, result })
    } catch (error) {
      if (!(error instanceof BotApiError)) throw error
      sendError(response, error)
    }
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const written = (place: Place): readonly Written[] =>
    world.messages
      .filter((message) => placeOf(message) === place.id && message.from.id === world.bot.id)
      .map((m) => toWritten(m, world))
  const say = (said: Said): string => {
    const message = addSaid(world, said)
    polls.add({ message: { ...message } }, said.twice)
    return String(message.message_id)
  }
  return {
    world,
    calls,
    apiUrl,
    written,
    say,
    token: world.token,
    newPlace: (kind, parent) => addPlace(world, kind, parent),
    reaction: (place, messageId) => STATES[world.reactions.get(`${chatId(place)} ${messageId}`) ?? ''],
    press({ place, messageId, label, author }) {
      const message = world.find(chatId(place), Number(messageId))
      const buttons = message?.reply_markup?.inline_keyboard.flat() ?? []
      const data = buttons.find(({ text }) => text === label)?.callback_data ?? 'gone'
      const id = String(world.next())
      return new Promise((answered) => {
        world.queries.set(id, answered)
        polls.add({ callback_query: { id, from: toUser(author), message, chat_instance: '1', data } })
      })
    },
    react({ place, messageId, emoji, author }) {
      const shown = emoji === '🛑' ? STOP_REACTION : emoji
      const update = world.reactionOf(
        { chatId: chatId(place), messageId: Number(messageId), user: toUser(author) },
        shown,
      )
      if (update && polls.allowed.includes('message_reaction')) polls.add({ message_reaction: update })
    },
    async command({ place, author, name, argument }) {
      const id = say({ place, author, text: `/${name}@${world.bot.username}${argument ? ` ${argument}` : ''}` })
      // The answer of an agent may come in between, so the answer to the command is the one that replies to it.
      const answer = () => world.messages.find((message) => String(message.reply_to_message?.message_id) === id)
      await waitUntil(() => answer() !== undefined, `an answer to /${name}`)
      return answer()?.text ?? ''
    },
    edit({ place, messageId, text }) {
      const message = world.find(chatId(place), Number(messageId))
      if (message === undefined) throw new Error(`no message ${messageId}`)
      if (message.document === undefined) message.text = text
      else message.caption = text
      message.edit_date = Math.floor(Date.now() / 1000)
      polls.add({ edited_message: { ...message } })
    },
    fail: (method, fault) => void faults.push({ method: new RegExp(`^${method}$`), fault }),
    failNextSend: (fault) => void faults.push({ method: /^send(Message|Document|Photo)$/, fault: FAULTS[fault] }),
    keepLimits: (ms) => {
      secondMs = ms
    },
    refusals: () => refusals,
    refuseEdits() {
      world.mayEdit = false
    },
    denyRights() {
      world.mayAttach = false
    },
    holdDownloads() {
      const held = Promise.withResolvers<void>()
      downloads = held.promise
      return held.resolve
    },
    sends: () => calls.filter(({ method }) => /^send(Message|Document|Photo|MediaGroup)$/.test(method)).length,
    pollElsewhere: polls.conflict,
    addUpdate: (update) => polls.add(update),
    moveGroup(group, { isAnnounced } = { isAnnounced: true }) {
      const to = addPlace(world, 'group')
      const chat = world.chats.get(chatId(group))
      if (chat === undefined) throw new Error(`no chat ${group.id}`)
      world.moved.set(chat.id, chatId(to))
      const message = { from: toUser(ADA), chat, migrate_to_chat_id: chatId(to) }
      if (isAnnounced) polls.add({ message: world.addMessage(message) })
      return to
    },
    unconfirmed: () => polls.pending.map(({ update_id }) => update_id),
    dropConnections: () => server.closeAllConnections(),
    isConnected: polls.isPolled,
    typings: (place) => world.typings.filter((id) => id === place.id).length,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What the channel takes for 🛑, which the service does not have. */
const STOP_REACTION = '😴'

const FAULTS = {
  rate_limited: { retryAfterS: 1 },
  server_error: 'html_502',
  lost_answer: 'lost_answer',
  no_answer: 'no_answer',
  refused: { status: 403, description: 'Forbidden: bot was blocked by the user' },
} as const satisfies Record<string, TelegramFault>

const LIMITED_METHODS = /^(send|edit|setMessageReaction)/
const POSTS = /^(send(Message|Document|Photo|MediaGroup)|editMessage(Text|Caption))$/

/**
 * How long the bot must wait for this call: 30 calls a second in all, 20 messages a minute in a group, and one a second in a
 * direct chat, with short bursts. Edits count as messages.
 */
function limitOf(
  method: string,
  parameters: Parameters,
  { counts, secondMs }: { readonly counts: CallCounts; readonly secondMs: number },
): number {
  if (!LIMITED_METHODS.test(method)) return 0
  const ofBot = counts.take('all', { limit: 30, windowMs: secondMs })
  if (ofBot.isOver) return ofBot.resetMs
  if (!POSTS.test(method)) return 0
  const chat = String(parameters['chat_id'])
  const window = chat.startsWith('-') ? { limit: 20, windowMs: 60 * secondMs } : { limit: 10, windowMs: 10 * secondMs }
  const ofChat = counts.take(chat, window)
  return ofChat.isOver ? ofChat.resetMs : 0
}

async function readParameters(
  request: IncomingMessage,
): Promise<{ parameters: Parameters; files: Map<string, TelegramFile> }> {
  const bytes = await buffer(request)
  const type = request.headers['content-type'] ?? ''
  const files = new Map<string, TelegramFile>()
  if (!type.startsWith('multipart/')) return { parameters: bytes.length > 0 ? JSON.parse(String(bytes)) : {}, files }
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
  const parameters: Parameters = {}
  for (const [name, value] of form) {
    if (typeof value === 'string') parameters[name] = value
    else
      files.set(name, {
        id: `file-${files.size}-${Date.now()}-${Math.random()}`,
        name: value.name,
        content: new Uint8Array(await value.arrayBuffer()),
      })
  }
  return { parameters, files }
}

function toError(fault: Exclude<TelegramFault, string>): BotApiError {
  if ('status' in fault) return new BotApiError(fault.status, fault.description)
  const { retryAfterS } = fault
  return new BotApiError(429, `Too Many Requests: retry after ${retryAfterS}`, { retry_after: retryAfterS })
}

function sendFile(response: ServerResponse, file: TelegramFile | undefined): void {
  if (file) response.end(file.content)
  else sendError(response, new BotApiError(404, 'Not Found'))
}

function addPlace(world: TelegramWorld, kind: 'direct' | 'group' | 'thread', parent?: Place): Place {
  if (kind === 'thread' && parent) {
    const thread = world.next()
    world.topics.add(`${parent.id}/${thread}`)
    return { id: `${parent.id}/${thread}`, parentId: parent.id, isDirect: false, name: parent.name }
  }
  const isDirect = kind === 'direct'
  const id = isDirect ? world.next() : -1_000_000_000_000 - world.next()
  const chat: TelegramChat = isDirect
    ? { id, type: 'private', first_name: 'ada' }
    : { id, type: 'supergroup', title: 'Team', is_forum: true }
  world.chats.set(id, chat)
  return { id: String(id), isDirect, name: isDirect ? 'ada' : 'Team' }
}

function addSaid(
  world: TelegramWorld,
  { place, text, author = ADA, mentions, sentAtMs, files = [], ...refers }: Said,
): TelegramMessage {
  const chat = world.chats.get(chatId(place))
  if (chat === undefined) throw new Error(`no chat ${place.id}`)
  const thread = place.id.split('/')[1]
  const mention = `@${world.bot.username}`
  const command = /^\/\w+(@\w+)?/.exec(text)?.[0]
  const entities = [
    ...(mentions ? [{ type: 'mention', offset: 0, length: mention.length }] : []),
    ...(command === undefined ? [] : [{ type: 'bot_command', offset: 0, length: command.length }]),
  ]
  const [file] = files
  const shown = mentions ? `${mention} ${text}` : text
  return world.addMessage({
    chat,
    from: toUser(author),
    ...(sentAtMs !== undefined && { date: Math.floor(sentAtMs / 1000) }),
    ...(thread !== undefined && { message_thread_id: Number(thread), is_topic_message: true as const }),
    ...toReferences(world, chat, refers),
    ...(file
      ? { ...(shown !== '' && { caption: shown, caption_entities: entities }), ...toMedia(world, file) }
      : { text: shown, entities }),
  })
}

/** A voice note has no name. */
function toMedia(world: TelegramWorld, file: SaidFile): Pick<TelegramMessage, 'document' | 'voice'> {
  const { file_name, ...stored } = storeFile(world, file)
  return file.isVoice ? { voice: { ...stored, duration: 1 } } : { document: { ...stored, file_name } }
}

/** What the message replies to, its first author, its album. */
function toReferences(
  world: TelegramWorld,
  chat: TelegramChat,
  { replyTo, forwardedFrom, album }: Pick<Said, 'replyTo' | 'forwardedFrom' | 'album'>,
): Pick<TelegramMessage, 'reply_to_message' | 'forward_origin' | 'media_group_id'> {
  const replied = replyTo === undefined ? undefined : world.find(chat.id, Number(replyTo))
  return {
    ...(replied && { reply_to_message: replied }),
    ...(forwardedFrom !== undefined && {
      forward_origin: { type: 'hidden_user', sender_user_name: forwardedFrom, date: Math.floor(Date.now() / 1000) },
    }),
    ...(album !== undefined && { media_group_id: album }),
  }
}

function storeFile(world: TelegramWorld, { name, content, mediaType }: SaidFile) {
  const id = `said-${world.next()}`
  world.files.set(id, { id, name, content })
  return { file_id: id, file_name: name, file_size: content.length, ...(mediaType && { mime_type: mediaType }) }
}

function toUser({ id, name, isBot }: Author): TelegramUser {
  return { id: Number(id), is_bot: isBot, first_name: name }
}

function chatId(place: Place): number {
  return Number(place.id.split('/')[0])
}

function placeOf({ chat, message_thread_id }: TelegramMessage): string {
  return message_thread_id === undefined ? String(chat.id) : `${chat.id}/${message_thread_id}`
}

function toWritten(message: TelegramMessage, world: TelegramWorld): Written {
  const { message_id, chat, text, caption, document, photo, reply_markup } = message
  const file = world.files.get(document?.file_id ?? photo?.[0]?.file_id ?? '')
  return {
    id: String(message_id),
    text: text ?? caption ?? '',
    buttons: reply_markup?.inline_keyboard.flat().map((button) => button.text) ?? [],
    files: file ? [{ name: file.name, content: file.content }] : [],
    edits: world.edits.get(`${chat.id} ${message_id}`) ?? 0,
  }
}
