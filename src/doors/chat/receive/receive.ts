/**
 * What comes in from a chat service. A message that concerns the bot is counted, stored, and put into the line of its
 * place; commands and buttons are answered. Invariant: `message` waits for the store only, so the channel may confirm it.
 */
import { judgePerson, mayInChat } from '../access.ts'
import type { Author, ButtonPress, CommandCall, IncomingMessage, IncomingReaction, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import { signOf } from '../emoji.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { ChatMessageKey } from '../store/chat-log.ts'
import { createFloodLimit, type FloodLimit, PLACE_MESSAGES_MAX } from './flood-limit.ts'
import { createMessageHandler, type HandlerParts, isTooOld } from './handle.ts'
import { createPlaceLines } from './place-lines.ts'
import { takeReaction } from './reactions.ts'

export interface Receiver {
  message(message: IncomingMessage): Promise<void>
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
  const { stored, chatLog, pairings, clock } = context
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
    const pace = flood.take(isStranger ? strangerKey(message) : place.id, sentAtMs)
    if (pace === 'ok') return true
    if (pace === 'first') void context.say({ place: place.id, markdown: FLOOD_TEXT })
    void context.signs.react({ place: place.id, messageId }, 'failed')
    return false
  }
  return {
    async message(message) {
      const { author, place, id, messageId = id, sentAtMs } = message
      if (author.id === context.account.id) return
      const isConcerned = message.isAddressed || (await context.channels.boundTo(stored.name, place)) !== undefined
      if (!isConcerned || !isListenedTo(message, context)) return
      const key: ChatMessageKey = { channel: stored.name, place: place.id, id }
      if (!(await chatLog.handled(key))) {
        const { isDirect } = place
        const arrival = { ...key, messageId, person: author.id, description: JSON.stringify(place), isDirect }
        if (!(await passesFlood(message))) await chatLog.record(arrival)
        else if (await chatLog.arrive({ ...arrival, message: JSON.stringify(message) })) lines.add(message)
      }
      if (!parts.behind.has(place.id)) await chatLog.markSeen(key, { id: messageId, atMs: sentAtMs })
    },
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
      for (const message of await chatLog.arrived(stored.name)) lines.add(JSON.parse(message) as IncomingMessage)
    },
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
