/** What the events of a room mean for the door: messages, edits, redactions, reactions, presses, rooms that moved. */
import type { Clock } from '../../clock.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { ChannelEvents, IncomingMessage, Place, QuotedMessage } from '../chat/channel.ts'
import { type MatrixApi, path } from './matrix-api.ts'
import { sendEvent } from './matrix-calls.ts'
import { noticeContent, plainEmoji } from './matrix-content.ts'
import { ENCRYPTED_SENTENCE } from './matrix-errors.ts'
import { type MatrixEvent, objectOf, relationOf, textOf } from './matrix-json.ts'
import type { KnownEvents } from './matrix-known.ts'
import {
  isEventId,
  type MatrixAccount,
  replyOf,
  targetEventOf,
  threadOf,
  toIncomingMessage,
} from './matrix-messages.ts'
import type { MatrixReactions } from './matrix-reactions.ts'
import { type Rooms, targetOf } from './matrix-rooms.ts'
import type { MatrixState } from './matrix-state.ts'

/** Answers below one prompt; a person who presses on and on gets no more. */
const ANSWERS_MAX = 20
/** Prompts whose answers are counted; beyond it the count of the oldest begins anew. */
const ANSWERED_MAX = 500

/** The door could not store a message: the homeserver gives it again. */
export class NotStored extends Error {}

export interface ReceiveContext {
  readonly api: MatrixApi
  readonly rooms: Rooms
  readonly known: KnownEvents
  readonly reactions: MatrixReactions
  readonly state: MatrixState
  readonly events: ChannelEvents
  readonly me: MatrixAccount
  readonly commands: ReadonlySet<string>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

export interface ReceivedEvent {
  readonly roomId: string
  readonly event: MatrixEvent
  readonly isLive: boolean
}

export interface EventReceiver {
  /** Rejects when a message could not be stored. */
  receive(received: ReceivedEvent): Promise<void>
  /** The message of an event; undefined for one of the bot, and for what is none. */
  read(received: ReceivedEvent): Promise<IncomingMessage | undefined>
  /** Says once in an encrypted room that the bot cannot read there. */
  tellEncrypted(roomId: string): Promise<void>
}

export function createEventReceiver(context: ReceiveContext): EventReceiver {
  const { rooms, known, events, me } = context
  const answer = createAnswers(context)
  const placeOf = (roomId: string, eventId: string) => rooms.place(roomId, known.peek(roomId, eventId)?.rootId)
  const read = async ({ roomId, event, isLive }: ReceivedEvent, place = rooms.place(roomId, threadOf(event))) => {
    if (event.sender === me.id || textOf(event.content['msgtype']) === undefined) return undefined
    const { name: authorName } = rooms.author(roomId, event.sender)
    const quoted = await findQuoted(roomId, replyOf(event), context)
    const { clock, commands } = context
    return toIncomingMessage(event, { me, place, authorName, quoted, nowMs: clock.nowMs(), isLive, commands })
  }
  const receiveEdit = async (received: ReceivedEvent, editedId: string) => {
    const { roomId, event } = received
    const original = await known.find(roomId, editedId)
    // Any member of a room can send an event that says it replaces the message of another person.
    if (original === undefined || original.sender !== event.sender) return
    const message = await read({ ...received, event: { ...event, id: editedId } }, rooms.place(roomId, original.rootId))
    if (message !== undefined) await events.edited?.(message)
  }
  const receiveMessage = async (received: ReceivedEvent) => {
    const { roomId, event } = received
    const editedId = targetEventOf(event, 'm.replace')
    if (editedId !== undefined) return event.sender === me.id ? undefined : await receiveEdit(received, editedId)
    known.add(roomId, event)
    const message = await read(received)
    if (message === undefined) return
    if (received.isLive) context.reactions.arrived(message.id)
    await events.message(message).catch((cause) => {
      throw new NotStored('a message could not be stored', { cause })
    })
  }
  const receiveReaction = async ({ roomId, event }: ReceivedEvent) => {
    const messageId = targetEventOf(event, 'm.annotation')
    const key = textOf(relationOf(event)['key'])
    if (messageId === undefined || key === undefined || event.sender === me.id) return
    const target = await known.find(roomId, messageId)
    const emoji = plainEmoji(key.slice(0, 100))
    const place = rooms.place(roomId, target?.rootId)
    const author = rooms.author(roomId, event.sender)
    const choice = target?.choices.find((one) => plainEmoji(one.key) === emoji)
    if (target?.sender !== me.id || choice === undefined)
      return await events.reacted?.({ place, messageId, author, emoji })
    const press = { id: event.id, place, author, buttonId: choice.id, messageId }
    // Not awaited: a decision may take long, and later messages of the room must not wait for it.
    void events.press({ ...press, answer: (text) => answer(place, messageId, `${author.name}: ${text}`) })
  }
  return {
    read,
    tellEncrypted: (roomId) => tellEncrypted(roomId, context),
    async receive(received) {
      const { roomId, event } = received
      if (event.type === 'm.room.message') await receiveMessage(received)
      if (event.type === 'm.reaction') await receiveReaction(received)
      if (event.type === 'm.room.encrypted') await tellEncrypted(roomId, context)
      if (event.type === 'm.room.tombstone' && event.stateKey === '') await follow(roomId, event, context)
      if (event.type !== 'm.room.redaction') return
      const messageId = textOf(event.raw['redacts']) ?? textOf(event.content['redacts'])
      if (isEventId(messageId)) await events.deleted?.({ place: placeOf(roomId, messageId).id, messageId })
    },
  }
}

async function findQuoted(
  roomId: string,
  messageId: string | undefined,
  { known, rooms, me }: ReceiveContext,
): Promise<QuotedMessage | undefined> {
  const found = messageId === undefined ? undefined : await known.find(roomId, messageId)
  if (messageId === undefined || found === undefined) return undefined
  const { name } = rooms.author(roomId, found.sender)
  return { messageId, authorName: name, isOwn: found.sender === me.id, text: found.text }
}

/** Nobody alone can see an answer in Matrix: it is a notice in the room, below the prompt. */
function createAnswers({ api, signal }: ReceiveContext) {
  const answered = new Map<string, number>()
  return async (place: Place, messageId: string, text: string): Promise<void> => {
    const before = answered.get(messageId) ?? 0
    if (before >= ANSWERS_MAX) return
    answered.set(messageId, before + 1)
    if (answered.size > ANSWERED_MAX) answered.delete(answered.keys().next().value ?? '')
    const { roomId, rootId } = targetOf(place.id)
    const content = noticeContent(text, { rootId, replyTo: messageId })
    await sendEvent(api, { roomId, type: 'm.room.message', content }, signal).catch(() => undefined)
  }
}

async function tellEncrypted(roomId: string, { api, state, log, signal }: ReceiveContext): Promise<void> {
  if (!(await state.firstTold(roomId))) return
  log.warn({ room: roomId }, 'a Matrix room is encrypted: the bot cannot read it')
  const content = noticeContent(ENCRYPTED_SENTENCE, {})
  void sendEvent(api, { roomId, type: 'm.room.message', content }, signal).catch((error) =>
    log.warn({ err: toMoleculeError(error) }, 'an encrypted Matrix room could not be told'),
  )
}

/** A room that was upgraded: the bot joins the new one, if that one says that it follows the old one. */
async function follow(roomId: string, { content, sender }: MatrixEvent, context: ReceiveContext): Promise<void> {
  const { api, events, log, signal } = context
  const next = textOf(content['replacement_room'])
  if (next === undefined || !next.startsWith('!') || next.length > 255) return
  try {
    const query = { server_name: sender.slice(sender.indexOf(':') + 1) }
    await api.call({ method: 'POST', path: path`/client/v3/join/${next}`, query, body: {} }, signal)
    const route = path`/client/v3/rooms/${next}/state/m.room.create/`
    const { room_id: before } = objectOf((await api.call({ method: 'GET', path: route }, signal))['predecessor'])
    if (before === roomId) await events.moved?.(roomId, next)
  } catch (error) {
    log.warn({ err: toMoleculeError(error), room: roomId }, 'a Matrix bot could not follow a room that was upgraded')
  }
}
