/**
 * The Socket Mode connection of the bot, by its library. Slack ends each connection after some hours and asks for a new one,
 * so a first drop is normal and is no problem to report. What was missed between two connections is read from the history.
 */
import type { SocketModeClient } from '@slack/socket-mode'
import { stepOf } from '../../backoff.ts'
import { MoleculeError } from '../../errors.ts'
import { abortable, onAbort, sleep } from '../../wait.ts'
import type { ChannelEvents, ChannelOptions } from '../chat/channel.ts'
import { appTokenOf, clientOptions, silentLogger } from './slack-api.ts'
import { connectError } from './slack-errors.ts'

const CONNECT_MS_MAX = 30_000
const REDIAL_MS = [100, 1000, 2000, 5000, 15_000, 30_000] as const

/** One message of the connection. Slack gives it again, to any connection of the app, until `ack`. */
export interface SlackEnvelope {
  readonly type: string
  readonly ack: (payload?: object) => Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: bodies of the service; each use reads what it needs
  readonly body: any
  readonly retry_num?: number
}

export interface SlackConnection {
  readonly ended: Promise<void>
}

interface SocketContext {
  readonly options: ChannelOptions
  readonly events: ChannelEvents
  readonly receive: (envelope: SlackEnvelope) => void
}

/** Resolves when the first connection stands; it is kept until the signal aborts. `ended`: the last one is closed. */
export async function keepConnected(context: SocketContext, signal: AbortSignal): Promise<SlackConnection> {
  const first = await openConnection(context, signal)
  return { ended: redialAfter(first, context, signal) }
}

async function redialAfter(first: SlackConnection, context: SocketContext, signal: AbortSignal): Promise<void> {
  const { events, options } = context
  await first.ended
  for (let drops = 0; !signal.aborted; drops++) {
    await sleep(options.clock, stepOf(REDIAL_MS, drops), signal)
    if (signal.aborted) return
    try {
      const connection = await openConnection(context, signal)
      events.problem(undefined)
      events.reconnected()
      drops = -1
      await connection.ended
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof MoleculeError && error.code === 'bad_config') return events.refused(error)
      events.problem('The connection to Slack ended; the bot reconnects.')
    }
  }
}

async function openConnection({ options, receive }: SocketContext, signal: AbortSignal): Promise<SlackConnection> {
  const { SocketModeClient: Client } = await import('@slack/socket-mode')
  const closing = new AbortController()
  const release = onAbort(signal, () => closing.abort())
  const client: SocketModeClient = new Client({
    appToken: appTokenOf(options),
    autoReconnectEnabled: false,
    logger: silentLogger,
    clientOptions: clientOptions(options, closing.signal),
  })
  client.on('slack_event', receive)
  const ended = new Promise<void>((resolve) => client.once('disconnected', () => resolve()))
  const end = () => void client.disconnect()
  const late = options.clock.after(CONNECT_MS_MAX, () => closing.abort())
  try {
    await abortable(client.start(), closing.signal)
  } catch (error) {
    closing.abort()
    end()
    throw connectError(error, 'app')
  } finally {
    late()
  }
  const stop = onAbort(signal, end)
  void ended.then(() => {
    release()
    stop()
  })
  return { ended }
}
