/**
 * The socket channel: a chat service of the owner's own, as a program that listens on a socket and speaks one JSON object a
 * line (`docs/doors/socket.md`). The platform dials it, greets it with the token, and repeats no request by itself: a
 * request whose answer is missing when the connection ends is `unknown`.
 */
import { stepOf } from '../../backoff.ts'
import { MoleculeError } from '../../errors.ts'
import { onAbort, sleep } from '../../wait.ts'
import type {
  Channel,
  ChannelEvents,
  ChannelKind,
  ChannelLimits,
  ChannelOptions,
  IncomingMessage,
  SendResult,
} from '../chat/channel.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'
import { dial, type Line, type Link, parseLine, unreachable } from './socket-link.ts'

const REQUEST_MS = 30_000
const REDIAL_MS = [100, 500, 1000, 5000] as const

export const socketKind: ChannelKind = {
  kind: 'socket',
  tokenVariable: 'SOCKET_CHANNEL_TOKEN',
  tokenSteps: ['Start your program, and give its address with --service-url tcp://127.0.0.1:<port>. Choose any token.'],
  async check(options, signal) {
    // A program that took this connection for the bot would send it messages, and they would be lost.
    const link = await dial(options, { check: true }, signal)
    link.socket.destroy()
    return { account: link.account, steps: [] }
  },
  open: async (options) => createSocketChannel(options),
}

const LIMITS: ChannelLimits = {
  textCharactersMax: 2000,
  uploadBytesMax: 8 * 1024 * 1024,
  downloadBytesMax: 20 * 1024 * 1024,
  editMs: 1000,
  typingMs: 5000,
  nonceMs: 0,
}

function createSocketChannel(options: ChannelOptions): Channel {
  const closing = new AbortController()
  const wire = createWire(options)
  let loop: Promise<void> = Promise.resolve()
  return {
    get limits() {
      return { ...LIMITS, ...wire.limits }
    },
    async connect(events, { commands }, signal) {
      onAbort(signal, () => closing.abort())
      onAbort(closing.signal, () => wire.link?.socket.destroy())
      wire.link = await dial(options, { commands }, closing.signal)
      wire.limits = wire.link.limits
      const { account } = wire.link
      loop = keepConnected(
        { wire, events, redial: () => dial(options, { commands }, closing.signal) },
        options,
        closing.signal,
      )
      return account
    },
    render: (markdown) => splitMarkdown(markdown, LIMITS.textCharactersMax),
    send: ({ files = [], ...message }) =>
      wire.send({
        type: 'send',
        ...message,
        files: files.map(({ content, ...file }) => ({ ...file, content: Buffer.from(content).toString('base64') })),
      }),
    edit: (message) => wire.send({ type: 'edit', ...message }),
    typing: async (place) => wire.write({ type: 'typing', place }),
    react: async (message, state) => wire.write({ type: 'react', ...message, state }),
    async download({ ref }, bytesMax) {
      const content = Buffer.from(String((await wire.ask({ type: 'download', ref }))['content']), 'base64')
      if (content.length > bytesMax) throw new MoleculeError('too_large', 'the file is too large')
      return content
    },
    history: async (query) => (await wire.ask({ type: 'history', ...query }))['messages'] ?? [],
    findSent: async ({ files: _, ...message }) => (await wire.ask({ type: 'find', ...message }))['messageId'],
    async close() {
      closing.abort()
      await loop
    },
  }
}

/** Requests and their answers over the current connection. */
interface Wire {
  link: Link | undefined
  /** Of the last connection: whether a lost answer is unknown depends on them. */
  limits: Partial<ChannelLimits>
  write(line: Line): void
  /** Hands an answer to its request; without one, all requests end without an answer. */
  settle(answer: Line | undefined): void
  send(line: Line): Promise<SendResult>
  ask(line: Line): Promise<Line>
}

function createWire({ clock }: ChannelOptions): Wire {
  const waiting = new Map<number, (line: Line | undefined) => void>()
  let requests = 0
  /** The answer; undefined when it is missing. */
  const request = (line: Line): Promise<Line | undefined> => {
    const n = ++requests
    return new Promise((resolve) => {
      const cancel = clock.after(REQUEST_MS, () => answer(undefined))
      const answer = (result: Line | undefined) => {
        cancel()
        waiting.delete(n)
        resolve(result)
      }
      waiting.set(n, answer)
      wire.write({ ...line, n })
    })
  }
  const wire: Wire = {
    link: undefined,
    limits: {},
    write(line) {
      wire.link?.socket.write(`${JSON.stringify(line)}\n`)
    },
    settle(answer) {
      if (answer !== undefined) return waiting.get(Number(answer['n']))?.(answer)
      for (const end of [...waiting.values()]) end(undefined)
    },
    async send(line) {
      if (wire.link === undefined) return { type: 'failed', error: 'the program is not connected', isUnsent: true }
      return (await request(line))?.['result'] ?? { type: 'unknown', error: 'the connection ended before the answer' }
    },
    async ask(line) {
      const answer = wire.link === undefined ? undefined : await request(line)
      if (answer === undefined) throw unreachable('the connection ended before the answer')
      return answer
    },
  }
  return wire
}

interface ConnectedLine {
  readonly wire: Wire
  readonly events: ChannelEvents
  readonly redial: () => Promise<Link>
}

/** Reads lines until the channel is closed, and dials again whenever the connection ends. */
async function keepConnected(line: ConnectedLine, { clock }: ChannelOptions, signal: AbortSignal): Promise<void> {
  const { wire, events, redial } = line
  for (let drops = 0; !signal.aborted; drops++) {
    if (wire.link !== undefined) {
      for await (const text of wire.link.lines) receive(parseLine(text) ?? {}, line)
      wire.link = undefined
      wire.settle(undefined)
      drops = 0
      if (!signal.aborted) events.problem('the connection to the program ended; it is dialled again')
    }
    await sleep(clock, stepOf(REDIAL_MS, drops), signal)
    try {
      wire.link = await redial()
      wire.limits = wire.link.limits
      events.problem(undefined)
      events.reconnected()
    } catch (error) {
      if (error instanceof MoleculeError && error.code === 'bad_config') return events.refused(error)
    }
  }
  wire.link?.socket.destroy()
}

function receive(line: Line, { wire, events }: ConnectedLine): void {
  const { id } = line
  const answer = async (text: string) => wire.write({ type: 'answer', id, text })
  if (line['type'] === 'result') wire.settle(line)
  if (line['type'] === 'command') void events.command({ ...line['command'], id, answer })
  if (line['type'] === 'press') void events.press({ ...line['press'], id, answer })
  if (line['type'] === 'reacted') void events.reacted?.(line['reaction'])
  if (line['type'] === 'edited') void events.edited?.(line['message'])
  if (line['type'] === 'deleted') void events.deleted?.(line['message'])
  if (line['type'] !== 'message') return
  const message = line['message'] as IncomingMessage
  // A message that could not be stored is not confirmed: the program sends it again after the next greeting.
  events.message(message).then(
    () => wire.write({ type: 'seen', id: message.id }),
    () => wire.link?.socket.destroy(),
  )
}
