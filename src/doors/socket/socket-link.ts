/** The connection of the socket channel: dials the program, greets it with the token, and reads its lines. */
import { createConnection, type Socket } from 'node:net'
import { MoleculeError } from '../../errors.ts'
import { onAbort } from '../../wait.ts'
import type { Account, ChannelConnectOptions, ChannelLimits, ChannelOptions } from '../chat/channel.ts'

/** A line above this ends the connection. A file of the upload limit fits. */
const LINE_CHARACTERS_MAX = 32 * 1024 * 1024
const GREETING_MS = 10_000

/** A connection after the greeting. */
export interface Link {
  readonly socket: Socket
  readonly account: Account
  readonly limits: Partial<ChannelLimits>
  readonly lines: AsyncGenerator<string>
}

// biome-ignore lint/suspicious/noExplicitAny: lines come from a program of the owner; each use reads what it needs
export type Line = Record<string, any>

export const unreachable = (problem: string, cause?: unknown) =>
  new MoleculeError('provider_unreachable', problem, { retryable: true, cause })

/** The greeting after the token: the commands of the bot, or that this connection only checks the token. */
type Greeting = { readonly commands: ChannelConnectOptions['commands'] } | { readonly check: true }

export async function dial(
  { token, apiUrl = '', clock }: ChannelOptions,
  greeting: Greeting,
  signal: AbortSignal,
): Promise<Link> {
  const url = URL.canParse(apiUrl) ? new URL(apiUrl) : undefined
  if (url?.protocol !== 'tcp:')
    throw new MoleculeError('bad_config', 'give the address of the program: --service-url tcp://<host>:<port>')
  const socket = createConnection({ host: url.hostname, port: Number(url.port) })
  const failed = new Promise<never>((_, reject) => {
    socket.once('error', (cause) => reject(unreachable(`the program at ${url.host} cannot be reached`, cause)))
  })
  failed.catch(() => undefined)
  const lines = readLines(socket)
  const cancelTimer = clock.after(GREETING_MS, () => socket.destroy())
  const release = onAbort(signal, () => socket.destroy())
  try {
    socket.write(`${JSON.stringify({ type: 'hello', token, ...greeting })}\n`)
    const first = await Promise.race([lines.next(), failed])
    const welcome = first.done ? undefined : parseLine(first.value)
    if (welcome?.['type'] === 'refused') {
      socket.destroy()
      throw new MoleculeError(
        'bad_config',
        `the program at ${url.host} refuses the token: give it the same token as the platform`,
      )
    }
    if (welcome?.['type'] !== 'welcome') {
      socket.destroy()
      throw unreachable(`the program at ${url.host} does not answer the greeting`)
    }
    return { socket, lines, account: welcome['account'], limits: welcome['limits'] ?? {} }
  } finally {
    cancelTimer()
    release()
  }
}

async function* readLines(socket: Socket): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const chunk of socket.setEncoding('utf8')) {
      rest += chunk
      if (rest.length > LINE_CHARACTERS_MAX) return
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch {
    // The connection broke; its reader dials again.
  } finally {
    socket.destroy()
  }
}

export function parseLine(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
