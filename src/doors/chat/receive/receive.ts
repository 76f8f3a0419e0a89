/**
 * What comes in from a chat service. A message that concerns the bot is counted, stored, and put into the line of its
 * place; commands and buttons are answered. Invariant: `message` waits for the store only, so the channel may confirm it.
 */
import { judgePerson, mayInChat } from '../access.ts'
import type {
  Author,
  ButtonPress,
  CommandCall,
  IncomingMessage,
  IncomingReaction,
  MessageKey,
  Place,
} from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import { signOf } from '../emoji.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { ChatArrival } from '../store/arrivals.ts'
import type { ChatMessageKey } from '../store/chat-log.ts'
import { createFloodLimit, type FloodLimit, PLACE_MESSAGES_MAX } from './flood-limit.ts'
import { createMessageHandler, type HandlerParts, isConcerned, isTooOld } from './handle.ts'
import { createPlaceLines, type PlaceLines } from './place-lines.ts'
import { takeReaction } from './reactions.ts'
import { reviseMessage } from './revise.ts'
import { isVoiceNote } from './voice-notes.ts'

export interface Receiver {
  message(message: IncomingMessage): Promise<void>
  /** As in `ChannelEvents`; they may reject. */
  edited(message: IncomingMessage): Promise<void>
  deleted(message: MessageKey): Promise<void>
  command(call: CommandCall): Promise<void>
  press(press: ButtonPress): Promise<void>
  reacted(reaction: IncomingReaction): Promise<void>
  /** Puts the held messages of people who were let in into the lines of their places. */
  releaseHeld(): Promise<void>
  /** Before anything arrives: the messages that were stored and not handled. */
  resume(): Promise<void>
}

export interface ReceiverParts extends HandlerParts {
  readonly prompts: Prompts
  /** Places whose history could not be read: the mark of the last message seen stays before what was missed. */
  readonly behind: ReadonlySet<string>
}

export function createReceiver(context: SessionContext, parts: ReceiverParts): Receiver {
  const { stored, chatLog, arrivals, pairings, clock } = context
  const flood = createFloodLimit()
  const reactionFlood = createFloodLimit()
  const handler = createMessageHandler(context, parts)
  const lines = createPlaceLines({ context, ...handler })
  /** True when the message is taken. A refusal waits for nothing: it must not become a way around the limit. */
  const passesFlood = async (message: IncomingMessage): Promise<boolean> => {
    const { author, place, id, messageId = id, sentAtMs } = message
    if (isTooOld(message, clock.nowMs())) return true
    const isStranger = !author.isBot && !mayInChat(await judgePerson(context, author), 'message.send')
    // Of a stranger a few messages are held, and nothing runs. A command of theirs is answered each time.
    if (isStranger && parts.commands.parse(message.text) === undefined) return true
    const pace = flood.take(isStranger ? strangerKey(message) : place.id, sentAtMs, message.groupId)
    if (pace === 'ok') return true
    if (pace === 'first') void context.say({ place: place.id, markdown: FLOOD_TEXT })
    void context.signs.react({ place: place.id, messageId }, 'failed')
    return false
  }
  const take = createIntake(context, lines)
  return {
    async message(message) {
      const { author, place, id, messageId = id, sentAtMs } = message
      if (author.id === context.account.id) return
      const isMeant = await isConcerned(message, context)
      // Another part of the album may mention the bot: that is known when all have arrived.
      if (!isListenedTo(message, context) || (!isMeant && message.groupId === undefined)) return
      const key: ChatMessageKey = { channel: stored.name, place: place.id, id }
      if (!(await chatLog.handled(key))) {
        const { isDirect } = place
        const arrival = { ...key, messageId, person: author.id, description: JSON.stringify(place), isDirect }
        if (isMeant && !(await passesFlood(message))) await chatLog.record(arrival)
        else await take(message, { ...arrival, message: JSON.stringify(message) })
      }
      if (!parts.behind.has(place.id)) await chatLog.markSeen(key, { id: messageId, atMs: sentAtMs })
    },
    async edited(message) {
      const { place, id, messageId = id, text, files } = message
      // The text of a voice note that became text is not its caption.
      if (context.transcribe !== undefined && files.some(isVoiceNote)) return
      if (isListenedTo(message, context)) await reviseMessage({ place: place.id, messageId }, { text }, context)
    },
    deleted: (message) => reviseMessage(message, { isWithdrawn: true }, context),
    command: (call) => takeCommand(call, { context, parts, flood }),
    async press(press) {
      if (!isListenedTo(press, context)) return await press.answer(NOT_HERE_TEXT)
      await parts.prompts.press(press)
    },
    async reacted(reaction) {
      if (signOf(reaction.emoji) === undefined || reaction.author.id === context.account.id) return
      if (!isListenedTo(reaction, context)) return
      // Each of them reads the store: beyond the limit a reaction is left out, and the buttons still count.
      if (reactionFlood.take(reaction.place.id, clock.nowMs()) !== 'ok') return
      await takeReaction(reaction, context, parts.prompts)
    },
    async releaseHeld() {
      for (const held of await pairings.released(stored.name)) lines.release(held)
    },
    async resume() {
      for (let after: string | undefined; ; ) {
        const page = await arrivals.waiting(stored.name, after)
        for (const key of page) lines.add(key)
        after = page.at(-1)?.arrival
        if (after === undefined) return
      }
    },
  }
}

/** Puts a message into the line of its place. Of a full line each further message is marked, and one sentence is said. */
function createIntake({ arrivals, chatLog, say, signs }: SessionContext, lines: PlaceLines) {
  /** The places that were told that their line is full. */
  const full = new Set<string>()
  return async ({ isAddressed }: IncomingMessage, arrival: ChatArrival): Promise<void> => {
    const { place, messageId } = arrival
    const taken = await arrivals.arrive(arrival)
    if (taken === 'known') return
    if (taken !== 'full') {
      full.delete(place)
      return lines.add(taken)
    }
    if (!full.has(place) && isAddressed) void say({ place, markdown: FULL_TEXT })
    if (full.size >= FULL_PLACES_MAX) full.clear()
    full.add(place)
    void signs.react({ place, messageId }, 'failed')
    await chatLog.record(arrival)
  }
}

async function takeCommand(
  call: CommandCall,
  { context, parts, flood }: { context: SessionContext; parts: ReceiverParts; flood: FloodLimit },
): Promise<void> {
  const { id, place, author, name, argument, answer, sentAtMs = context.clock.nowMs() } = call
  if (!isListenedTo(call, context)) return await answer(NOT_HERE_TEXT)
  // Prevents that a menu of commands is a way around the limit: each of them reads the store or changes something.
  const standing = await judgePerson(context, author)
  const key = mayInChat(standing, 'message.send') ? place.id : strangerKey(call)
  if (flood.take(key, sentAtMs) !== 'ok') return await answer(FLOOD_TEXT)
  if (standing === 'owner') await parts.prompts.ownerIn(place, author)
  await answer(await parts.commands.run({ id, place, author, name, argument, standing }))
}

/** Prevents that strangers use up the limit of a group. */
const strangerKey = ({ place, author }: { readonly place: Place; readonly author: Author }): string =>
  `${place.id} ${author.id}`

/** Then each of them may be told once more. */
const FULL_PLACES_MAX = 1000
const FULL_TEXT =
  'Too many messages wait here already, so I left out the ones that came now. Send them again when I have answered.'
const NOT_HERE_TEXT = 'I do not answer here.'
const FLOOD_TEXT = `That is too many messages at once: I answer ${PLACE_MESSAGES_MAX} a minute and leave out the others.`

/** Whether this bot looks at what the author says, chooses or presses in the place at all. */
function isListenedTo(
  { place, author }: { readonly place: Place; readonly author: Author },
  context: SessionContext,
): boolean {
  if (author.isBot && !context.stored.settings.allowedBots?.includes(author.id)) return false
  return isAllowedPlace(place, context)
}

/** Direct chats are always allowed: their people are judged. */
function isAllowedPlace({ id, parentId, isDirect }: Place, { stored }: SessionContext): boolean {
  const { allowedPlaces } = stored.settings
  return isDirect || allowedPlaces === undefined || allowedPlaces.includes(id) || allowedPlaces.includes(parentId ?? id)
}
