/** A fake program for the socket channel: it keeps unconfirmed messages, and it can fail in every way that a service does. */
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Author, IncomingMessage, Place, QuotedMessage } from '../../src/doors/chat/channel.ts'
import type { ChatService, Said, Written } from './chat-service.ts'
import { type CallWindow, createCallCounts } from './windows.ts'

export interface SocketServiceOptions {
  /** Keeps no unconfirmed message: the platform must read the history. */
  readonly usesHistory?: boolean
  /** How long a second send with the same nonce is dropped. */
  readonly nonceMs?: number
  /** How long the bot is told to wait by `rate_limited`. */
  readonly limitMs?: number
}

export interface SocketService extends ChatService {
  /** The payloads of the buttons that the bot has posted in a place. */
  payloads(place: Place): readonly string[]
  /** A person sends a press with any payload, as a changed client can. */
  forge(press: { place: Place; messageId: string; buttonId: string; author: Author }): Promise<string>
}

type Fault = Parameters<ChatService['failNextSend']>[0]
// biome-ignore lint/suspicious/noExplicitAny: lines of the protocol have many shapes
type Line = Record<string, any>

const ADA: Author = { id: 'ada', name: 'Ada', isBot: false }
let numbers = 0

interface StoredMessage extends Written {
  readonly place: string
  readonly nonce: string
  readonly buttonIds: readonly { readonly id: string; readonly label: string }[]
}

export async function startSocketService({
  usesHistory = false,
  nonceMs = 0,
  limitMs = 50,
}: SocketServiceOptions = {}): Promise<SocketService> {
  const token = 'line-secret-token'
  const written: StoredMessage[] = []
  const said: IncomingMessage[] = []
  const unconfirmed = new Map<string, IncomingMessage>()
  const files = new Map<string, Uint8Array>()
  const reactions = new Map<string, string>()
  const typings = new Map<string, number>()
  const faults: Fault[] = []
  const answers = new Map<string, (text: string) => void>()
  let bot: Socket | undefined
  const writeTo = (socket: Socket | undefined, line: Line) => socket?.write(`${JSON.stringify(line)}\n`)
  const write = (line: Line) => writeTo(bot, line)
  const greet = (socket: Socket, { token: given, check }: Line) => {
    if (given !== token) return void socket.end(`${JSON.stringify({ type: 'refused' })}\n`)
    writeTo(socket, { type: 'welcome', account: { id: 'bot', name: 'Molecule' }, limits: { nonceMs, editMs: 50 } })
    if (check === true) return
    bot = socket
    for (const message of unconfirmed.values()) write({ type: 'message', message })
  }

  const counts = createCallCounts()
  let limit: CallWindow | undefined
  let refusals = 0
  let mayAttach = true
  let refusesEdits = false
  let downloads = Promise.resolve()
  const send = (line: Line, socket: Socket) => {
    const result = (value: object) => write({ type: 'result', n: line['n'], result: value })
    const taken = limit && counts.take(String(line['place']), limit)
    if (taken?.isOver) {
      refusals += 1
      return result({ type: 'failed', error: 'too many messages', retryAfterMs: taken.resetMs })
    }
    const fault = faults.shift()
    if (fault === 'rate_limited') return result({ type: 'failed', error: 'too many messages', retryAfterMs: limitMs })
    if (fault === 'refused') return result({ type: 'failed', error: 'not here', final: true })
    if (fault === 'server_error') return result({ type: 'failed', error: 'the service failed with 502' })
    if (!mayAttach && line['files']?.length > 0) return result({ type: 'failed', error: 'no files here', final: true })
    const copy = nonceMs > 0 && written.find(({ nonce }) => nonce === line['nonce'])
    const id = copy ? copy.id : `w${++numbers}`
    if (!copy) written.push(toStored(id, line))
    if (fault === 'lost_answer') return void socket.destroy()
    if (fault === 'no_answer') return
    return result({ type: 'sent', messageId: id })
  }
  const edit = (line: Line) => {
    const index = written.findIndex(({ id }) => id === line['messageId'])
    const old = written[index]
    const result = (value: object) => write({ type: 'result', n: line['n'], result: value })
    if (old === undefined || refusesEdits) return result({ type: 'failed', error: 'no such message', final: true })
    const taken = limit && counts.take(old.place, limit)
    if (taken?.isOver) {
      refusals += 1
      return result({ type: 'failed', error: 'too many messages', retryAfterMs: taken.resetMs })
    }
    written[index] = { ...old, text: line['text'], buttons: [], buttonIds: [], edits: old.edits + 1 }
    return result({ type: 'sent', messageId: line['messageId'] })
  }
  const history = (line: Line) => {
    const index = said.findIndex(({ id }) => id === line['afterMessageId'])
    const after =
      line['sinceMs'] === undefined ? said.slice(index + 1) : said.filter(({ sentAtMs }) => sentAtMs >= line['sinceMs'])
    const messages = after.filter(({ place }) => place.id === line['place'].id)
    write({ type: 'result', n: line['n'], messages: usesHistory ? messages.slice(0, line['limit']) : [] })
  }
  const receive = (line: Line, socket: Socket) => {
    const { n } = line
    switch (line['type']) {
      case 'hello':
        return greet(socket, line)
      case 'seen':
        return void unconfirmed.delete(line['id'])
      case 'send':
        return void send(line, socket)
      case 'edit':
        return edit(line)
      case 'typing':
        return void typings.set(line['place'], (typings.get(line['place']) ?? 0) + 1)
      case 'react':
        return void reactions.set(`${line['place']} ${line['messageId']}`, line['state'])
      case 'download':
        return void downloads.then(() =>
          write({ type: 'result', n, content: Buffer.from(files.get(line['ref']) ?? []).toString('base64') }),
        )
      case 'history':
        return history(line)
      case 'find':
        return void write({ type: 'result', n, messageId: written.find(({ nonce }) => nonce === line['nonce'])?.id })
      case 'answer':
        return answers.get(line['id'])?.(line['text'])
      default:
        throw new Error(`the platform sends ${JSON.stringify(line)}`)
    }
  }
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (bot === socket) bot = undefined
    })
    createInterface({ input: socket })
      .on('error', () => undefined)
      .on('line', (text) => receive(JSON.parse(text), socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const ask = (line: Line): Promise<string> => {
    const id = `i${++numbers}`
    return new Promise((resolve) => {
      answers.set(id, resolve)
      write({ ...line, id })
    })
  }
  const quotedBy = ({ replyTo }: Said): QuotedMessage | undefined => {
    const own = written.find(({ id }) => id === replyTo)
    if (own !== undefined) return { messageId: own.id, authorName: 'Molecule', isOwn: true, text: own.text }
    const other = said.find(({ id }) => id === replyTo)
    return other && { messageId: other.id, authorName: other.author.name, isOwn: false, text: other.text }
  }
  return {
    apiUrl: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    newPlace(kind, parent) {
      const id = `p${++numbers}`
      return { id, name: `#${id}`, isDirect: kind === 'direct', ...(parent && { parentId: parent.id }) }
    },
    say(given) {
      const message = toIncoming(given, files, quotedBy(given))
      said.push(message)
      if (!usesHistory) unconfirmed.set(message.id, message)
      const event = { type: 'message', message: { ...message, isLive: true } }
      write(event)
      if (given.twice) write(event)
      return message.id
    },
    edit({ messageId, text }) {
      const index = said.findIndex(({ id }) => id === messageId)
      const old = said[index]
      if (old === undefined) throw new Error(`no message ${messageId}`)
      const message = { ...old, text }
      said[index] = message
      if (unconfirmed.has(messageId)) unconfirmed.set(messageId, message)
      write({ type: 'edited', message })
    },
    remove({ place, messageId }) {
      unconfirmed.delete(messageId)
      const index = said.findIndex(({ id }) => id === messageId)
      if (index !== -1) said.splice(index, 1)
      write({ type: 'deleted', message: { place: place.id, messageId } })
    },
    written: (place) => written.filter((message) => message.place === place.id),
    reaction: (place, messageId) => reactions.get(`${place.id} ${messageId}`),
    press({ place, messageId, label, author }) {
      const message = written.find(({ id }) => id === messageId)
      const buttonId = message?.buttonIds.find((button) => button.label === label)?.id ?? 'gone'
      return ask({ type: 'press', press: { place, author, messageId, buttonId } })
    },
    react: (reaction) => write({ type: 'reacted', reaction }),
    payloads: (place) =>
      written.flatMap((message) => (message.place === place.id ? message.buttonIds.map(({ id }) => id) : [])),
    forge: (press) => ask({ type: 'press', press }),
    command: ({ place, author, name, argument = '' }) =>
      ask({ type: 'command', command: { place, author, name, argument } }),
    failNextSend: (fault) => void faults.push(fault),
    keepLimits: (secondMs) => {
      limit = { limit: 5, windowMs: 5 * secondMs }
    },
    refusals: () => refusals,
    refuseEdits() {
      refusesEdits = true
    },
    denyRights() {
      mayAttach = false
    },
    holdDownloads() {
      const held = Promise.withResolvers<void>()
      downloads = held.promise
      return held.resolve
    },
    sends: () => written.length,
    dropConnections: () => bot?.destroy(),
    isConnected: () => bot !== undefined,
    typings: (place) => typings.get(place.id) ?? 0,
    async close() {
      bot?.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function toStored(id: string, line: Line): StoredMessage {
  const { text, place, nonce, buttons = [], files = [] } = line
  return {
    id,
    text,
    place,
    nonce,
    buttonIds: buttons,
    edits: 0,
    buttons: buttons.map(({ label }: { label: string }) => label),
    files: files.map((file: { name: string; content: string }) => ({
      name: file.name,
      content: Buffer.from(file.content, 'base64'),
    })),
  }
}

function toIncoming(given: Said, stored: Map<string, Uint8Array>, quoted?: QuotedMessage): IncomingMessage {
  const { place, text, author = ADA, mentions = false, sentAtMs = Date.now(), files = [] } = given
  const { forwardedFrom, album: groupId } = given
  const attached = files.map(({ name, content, mediaType, isVoice }) => {
    const ref = `f${++numbers}`
    stored.set(ref, content)
    const kind = { ...(mediaType !== undefined && { mediaType }), ...(isVoice && { isVoice }) }
    return { ref, name, bytes: content.length, ...kind }
  })
  return {
    id: `m${++numbers}`,
    place,
    author,
    text,
    isAddressed: place.isDirect || mentions,
    sentAtMs,
    files: attached,
    ...(quoted && { quoted }),
    ...(forwardedFrom !== undefined && { forwardedFrom }),
    ...(groupId !== undefined && { groupId }),
  }
}
