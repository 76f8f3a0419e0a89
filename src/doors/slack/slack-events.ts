/**
 * What comes over the connection: messages in the order of their channel, edits, deletions, reactions, buttons and commands.
 * Slack gives an envelope again after three seconds without an answer. A message is confirmed only when the door has stored it;
 * a press and a command are confirmed first, because their answers take longer, and answered by their response address.
 */
import { createKeyedQueue, sleep } from '../../wait.ts'
import type { ChannelEvents, ChannelOptions, IncomingMessage } from '../chat/channel.ts'
import { requireSlackHost } from './slack-api.ts'
import { isGone } from './slack-errors.ts'
import { isWritten, type SlackMessage, type SlackSelf } from './slack-messages.ts'
import { renderSlack } from './slack-mrkdwn.ts'
import type { SlackNames } from './slack-names.ts'
import { emojiOf } from './slack-reactions.ts'
import type { SlackEnvelope } from './slack-socket.ts'

/** A message that the door could not store is given again after this time, so often; then only the history has it. */
const GIVE_AGAIN_MS = 2000
const TRIES_MAX = 150
/** Envelopes that wait for the door; the history has the others. */
const WAITING_MAX = 1000
const ANSWER_MS_MAX = 30_000

export interface SlackEventsContext {
  readonly options: ChannelOptions
  readonly events: ChannelEvents
  readonly names: SlackNames
  readonly me: SlackSelf
  /** The message as the door sees it; undefined for the bot's own and for notes of the service. */
  read(message: SlackMessage, channel: string): Promise<IncomingMessage | undefined>
  /** A message that is new. */
  arrived(channel: string, ts: string): void
}

/** An event of the Events API, by the fields that are read here. */
interface SlackEvent extends SlackMessage {
  readonly type: string
  readonly channel?: string
  readonly message?: SlackMessage
  readonly previous_message?: SlackMessage
  readonly deleted_ts?: string
  readonly reaction?: string
  readonly item?: { readonly type: string; readonly channel: string; readonly ts: string }
}

export function createReceiver(context: SlackEventsContext, signal: AbortSignal): (envelope: SlackEnvelope) => void {
  const { events, options } = context
  const inChannel = createKeyedQueue()
  let waiting = 0
  let isBehind = false
  const giveUntilStored = async (envelope: SlackEnvelope) => {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await receiveEvent(envelope, context)
        return await confirm(envelope)
      } catch (error) {
        if (isGone(error)) return await confirm(envelope)
        if (tries < TRIES_MAX) await sleep(options.clock, GIVE_AGAIN_MS, signal)
        else {
          options.log.warn({}, 'a message of Slack could not be stored; it is read from the history')
          isBehind = true
          return
        }
      }
    }
  }
  return (envelope) => {
    if (envelope.type === 'interactive' || envelope.type === 'slash_commands') {
      void confirm(envelope)
      const receive = envelope.type === 'interactive' ? receivePress : receiveCommand
      receive(envelope.body, context).catch(() =>
        options.log.warn({ type: envelope.type }, 'a press or a command of Slack could not be handled'),
      )
      return
    }
    if (envelope.type !== 'events_api') return void confirm(envelope)
    if (waiting >= WAITING_MAX) {
      // It is not confirmed, so Slack gives it again.
      isBehind = true
      return
    }
    waiting += 1
    const event: SlackEvent = envelope.body?.event ?? {}
    void inChannel(event.channel ?? event.item?.channel ?? '', () => giveUntilStored(envelope)).then(() => {
      waiting -= 1
      if (waiting > 0 || !isBehind) return
      isBehind = false
      events.reconnected()
    })
  }
}

/** A confirmation that does not arrive makes Slack give the envelope again, and the door knows it by its id. */
const confirm = ({ ack }: SlackEnvelope): Promise<void> => ack().catch(() => undefined)

async function receiveEvent({ body, retry_num }: SlackEnvelope, context: SlackEventsContext): Promise<void> {
  const event: SlackEvent = body?.event ?? {}
  const { events, read, names, me } = context
  const { channel, subtype } = event
  if (event.type === 'reaction_added') return await receiveReaction(event, context)
  if (event.type !== 'message' || channel === undefined) return
  if (subtype === 'message_deleted' && event.deleted_ts !== undefined) {
    const { id } = await names.place(channel, threadIn(event.previous_message))
    return await events.deleted?.({ place: id, messageId: event.deleted_ts })
  }
  if (subtype === 'message_changed') {
    const { message, previous_message: before } = event
    // A message also changes when the service adds a preview, or a reply to it.
    if (message === undefined || message.text === before?.text) return
    const changed = await read(message, channel)
    return changed && (await events.edited?.(changed))
  }
  if (!isWritten(event) || event.user === me.userId) return
  const message = await read(event, channel)
  if (message === undefined) return
  context.arrived(channel, event.ts)
  const isLive = (retry_num ?? 0) === 0
  await events.message(isLive ? { ...message, isLive } : message)
}

const threadIn = (message: SlackMessage | undefined): string | undefined =>
  message === undefined || message.thread_ts === message.ts ? undefined : message.thread_ts

/** An event of a reaction has no thread: the door knows the message by its time stamp. */
async function receiveReaction(event: SlackEvent, { events, names, me }: SlackEventsContext): Promise<void> {
  const { item, reaction = '', user } = event
  const emoji = emojiOf(reaction)
  if (item?.type !== 'message' || emoji === undefined || user === undefined || user === me.userId) return
  const [author, place] = await Promise.all([names.author({ user }), names.place(item.channel, undefined)])
  await events.reacted?.({ place, messageId: item.ts, author, emoji, isInAnyThread: true })
}

interface PressBody {
  readonly type: string
  readonly user: { readonly id: string }
  readonly channel?: { readonly id: string }
  readonly message?: SlackMessage
  readonly actions?: readonly { readonly action_ts?: string; readonly value?: string }[]
  readonly response_url?: string
}

async function receivePress(body: PressBody, { events, names, options }: SlackEventsContext): Promise<void> {
  const { type, user, channel, message, actions = [], response_url = '' } = body
  const [action] = actions
  if (type !== 'block_actions' || channel === undefined || message === undefined || action?.value === undefined) return
  const thread = threadIn(message)
  const [author, place] = await Promise.all([names.author({ user: user.id }), names.place(channel.id, thread)])
  await events.press({
    id: `${channel.id}/${message.ts}/${user.id}/${action.action_ts ?? action.value}`,
    place,
    author,
    buttonId: action.value,
    messageId: message.ts,
    answer: (text) => respond(response_url, { text, replace_original: false, thread_ts: thread }, options),
  })
}

interface CommandBody {
  readonly command: string
  readonly text?: string
  readonly user_id: string
  readonly channel_id: string
  readonly trigger_id: string
  readonly response_url: string
}

/** `/molecule new` and `/new` are the same: many short names are taken by Slack itself, such as `/status`. */
async function receiveCommand(body: CommandBody, { events, names, options }: SlackEventsContext): Promise<void> {
  const { command, text = '', user_id, channel_id, trigger_id, response_url } = body
  const own = command.replace(/^\//, '')
  const words = text.trim()
  const space = words.search(/\s/)
  const [first, rest] = space === -1 ? [words, ''] : [words.slice(0, space), words.slice(space + 1).trim()]
  const [author, place] = await Promise.all([names.author({ user: user_id }), names.place(channel_id, undefined)])
  await events.command({
    id: trigger_id,
    place,
    author,
    name: own === COMMAND ? first.replace(/^\//, '') || 'help' : own,
    argument: own === COMMAND ? rest : words,
    async answer(markdown) {
      const [shown = '(no text)', ...more] = renderSlack(markdown)
      for (const each of [shown, ...more].slice(0, ANSWERS_MAX)) await respond(response_url, { text: each }, options)
    },
  })
}

/** The command of the manifest in `docs/doors/slack.md`. */
const COMMAND = 'molecule'
/** Slack takes so many answers by one address. */
const ANSWERS_MAX = 5

/** Only the person who pressed or gave the command sees it. */
async function respond(address: string, body: object, options: ChannelOptions): Promise<void> {
  const response = await fetch(requireSlackHost(address, options), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ response_type: 'ephemeral', ...body }),
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  })
  await response.body?.cancel()
}
