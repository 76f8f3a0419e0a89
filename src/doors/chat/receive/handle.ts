/**
 * What happens to a stored message of a chat: it is held until its author is let in, named as too old, taken as a command,
 * or admitted to a workspace. Invariant: a message of a person who is not let in runs nothing.
 */
import { MoleculeError } from '../../../errors.ts'
import { judgePerson } from '../access.ts'
import type { IncomingMessage } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import type { Commands } from '../commands/commands.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { TaskFollower } from '../send/follow.ts'
import type { KnownPlace } from '../store/chat-log.ts'
import { admit } from './admit.ts'
import { createMissedMessages } from './missed-messages.ts'

/** An older message that was not live is named and not answered. */
const ANSWERED_AGE_MS_MAX = 3600_000
/** Messages of bots in a row without a person between them; the next one is not answered. */
const BOT_MESSAGES_MAX = 5

export interface MessageHandler {
  handle(message: IncomingMessage): Promise<void>
  /** A held message of a person who was let in: it is not too old, and no command. */
  admitHeld(message: IncomingMessage): Promise<void>
  /** The message needs nothing more. */
  finish(message: IncomingMessage): Promise<void>
}

export interface HandlerParts {
  readonly follower: TaskFollower
  readonly commands: Commands
  readonly prompts: Pick<Prompts, 'look' | 'ownerIn'>
}

export function createMessageHandler(context: SessionContext, parts: HandlerParts): MessageHandler {
  const { stored, chatLog, clock } = context
  const missed = createMissedMessages(context)
  const placeOf = ({ place }: IncomingMessage) =>
    chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
  const finish: MessageHandler['finish'] = async ({ place, id, messageId = id, author }) => {
    await chatLog.record({ channel: stored.name, place: place.id, id, messageId, person: author.id })
  }
  return {
    finish,
    async handle(message) {
      const { author, place, id, messageId = id } = message
      // An album without a mention, or the place was unbound meanwhile.
      if (!(await isConcerned(message, context))) return await finish(message)
      const known = await placeOf(message)
      if (!(await passesLoopGuard(message, known, context))) return await finish(message)
      const standing = author.isBot ? 'user' : await judgePerson(context, author)
      if (standing === 'denied') return await finish(message)
      const command = parts.commands.parse(message.text)
      const answerCommand = async (given: typeof command & object) => {
        const markdown = await parts.commands.run({ ...given, id, place, author, standing })
        await context.say({ place: place.id, markdown, replyTo: messageId })
        await finish(message)
      }
      // A command of a stranger runs nothing, so it is answered and not held.
      if (standing === 'unknown' && command !== undefined) return await answerCommand(command)
      if (standing === 'unknown') {
        await holdMessage(message, context, parts.prompts)
        return await finish(message)
      }
      if (standing === 'owner') await parts.prompts.ownerIn(place, author)
      if (isTooOld(message, clock.nowMs())) {
        missed.add(message)
        return await finish(message)
      }
      if (command !== undefined) return await answerCommand(command)
      const workspaceId = await answeringWorkspace(place, context)
      await admit({ message, known, workspaceId, standing }, context, parts.follower)
    },
    async admitHeld(message) {
      const workspaceId = await answeringWorkspace(message.place, context)
      const standing = await judgePerson(context, message.author)
      await admit({ message, known: await placeOf(message), workspaceId, standing }, context, parts.follower)
    },
  }
}

/** Whether the bot is meant. */
export async function isConcerned({ isAddressed, place }: IncomingMessage, context: SessionContext): Promise<boolean> {
  return isAddressed || (await context.channels.boundTo(context.stored.name, place)) !== undefined
}

/** A message that arrives as it is written is never old, whatever the clock of this machine says. */
export const isTooOld = ({ isLive, sentAtMs }: IncomingMessage, nowMs: number): boolean =>
  isLive !== true && nowMs - sentAtMs > ANSWERED_AGE_MS_MAX

/** Prevents two bots from answering each other for ever. */
async function passesLoopGuard(
  { author, place }: IncomingMessage,
  { guard }: KnownPlace,
  { chatLog, stored, say }: SessionContext,
): Promise<boolean> {
  const key = { channel: stored.name, place: place.id }
  if (!author.isBot) {
    if (guard.bots > 0) await chatLog.setGuard(key, { bots: 0, said: false })
    return true
  }
  const bots = guard.bots + 1
  if (bots <= BOT_MESSAGES_MAX) {
    await chatLog.setGuard(key, { bots, said: false })
    return true
  }
  if (guard.said) return false
  await chatLog.setGuard(key, { bots, said: true })
  await say({
    place: place.id,
    markdown: `I stop here: ${BOT_MESSAGES_MAX} messages of bots followed each other. I answer again after a message of a person.`,
  })
  return false
}

/** Keeps the message, and tells its author the code: the first message stays in its line until the code was sent. */
async function holdMessage(
  message: IncomingMessage,
  context: SessionContext,
  prompts: HandlerParts['prompts'],
): Promise<void> {
  const { pairings, stored, say } = context
  const { author, place } = message
  const key = { channel: stored.name, person: author.id }
  const request = await pairings.request({ ...key, name: author.name.slice(0, 100) })
  if (request === undefined) return
  const held = await pairings.hold(key, { place: place.id, id: message.id, message: JSON.stringify(message) })
  if (held !== 'first') return
  // The owners are asked meanwhile.
  prompts.look()
  const said = await say({
    place: place.id,
    replyTo: message.messageId ?? message.id,
    markdown: `Hello ${author.name}. I do not know you yet, so nothing was run. Give my owner this code: **${request.pairing.code}**. Once the owner has approved it, I answer this message.\n\n(The owner types: \`molecule pair approve ${request.pairing.code}\`)`,
  })
  if (said === undefined || (said.type === 'failed' && said.final !== true))
    throw new MoleculeError('provider_unreachable', 'the code of a pairing was not sent', { retryable: true })
}
