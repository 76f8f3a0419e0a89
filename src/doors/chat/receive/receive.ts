/**
 * What happens to a message of a chat: it is ignored, held until its author is let in, refused with one sentence, taken as
 * a command, or admitted to a workspace. Invariant: each message is admitted once, under its id, and a message of a person
 * who is not let in runs nothing.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { Part } from '../../../protocol/a2a.ts'
import { envelopeOf } from '../../../protocol/envelope.ts'
import { judgePerson, mayInChat } from '../access.ts'
import type { Author, ButtonPress, CommandCall, IncomingMessage, Place } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { TaskFollower } from '../send/follow.ts'
import { chatPrincipal } from '../store/channels.ts'
import type { ChatMessageKey, KnownPlace } from '../store/chat-log.ts'
import type { Commands } from './commands.ts'
import { createFailingMessages } from './failing-messages.ts'
import { createFloodLimit, type FloodLimit } from './flood-limit.ts'
import { createMissedMessages } from './missed-messages.ts'

export interface Receiver {
  message(message: IncomingMessage): Promise<void>
  command(call: CommandCall): Promise<void>
  press(press: ButtonPress): Promise<void>
  /** Handles the held messages of people who were let in. */
  releaseHeld(): Promise<void>
}

export interface ReceiverParts {
  readonly prompts: Prompts
  readonly follower: TaskFollower
  readonly commands: Commands
}

/** An older message is named and not answered. */
const ANSWERED_AGE_MS_MAX = 3600_000
/** Messages of bots in a row without a person between them; the next one is not answered. */
const BOT_MESSAGES_MAX = 5
const FILES_MAX = 10
/** A turn that waits for its answer is the oldest of its place; those before it may have ended just now. */
const OPEN_LOOKED_AT_MAX = 5
/** An older message has waited for the bot. */
const LIVE_MS_MAX = 60_000

export function createReceiver(context: SessionContext, parts: ReceiverParts): Receiver {
  const { stored, chatLog, clock } = context
  const missed = createMissedMessages(context)
  const flood = createFloodLimit(clock)
  const keyOf = ({ place, id }: IncomingMessage): ChatMessageKey => ({ channel: stored.name, place: place.id, id })
  const finish = (message: IncomingMessage) =>
    chatLog.record({ ...keyOf(message), messageId: message.messageId ?? message.id, person: message.author.id })
  const handle = async (message: IncomingMessage, workspaceId: string | undefined): Promise<void> => {
    const { author, place } = message
    const known = await chatLog.place(keyOf(message), JSON.stringify(place))
    if (!(await passesLoopGuard(message, known, context))) return await finish(message)
    const standing = author.isBot ? 'user' : await judgePerson(context, author)
    if (standing === 'denied') return await finish(message)
    if (standing === 'unknown') {
      await holdMessage(message, context)
      return await finish(message)
    }
    if (clock.nowMs() - message.sentAtMs > ANSWERED_AGE_MS_MAX) {
      missed.add(message)
      return await finish(message)
    }
    // Messages that waited for the bot come all at once and are no flood.
    const pace = clock.nowMs() - message.sentAtMs > LIVE_MS_MAX ? 'ok' : flood.take(place.id)
    if (pace !== 'ok') {
      if (pace === 'first') await context.say({ place: place.id, markdown: FLOOD_TEXT })
      await context.channel.react({ place: place.id, messageId: message.messageId ?? message.id }, 'failed')
      return await finish(message)
    }
    const command = parts.commands.parse(message.text)
    if (command !== undefined) {
      const markdown = await parts.commands.run({ ...command, place, author, standing })
      await context.say({ place: place.id, markdown, replyTo: message.messageId ?? message.id })
      return await finish(message)
    }
    await admit({ message, known, workspaceId }, context, parts)
  }
  const failing = createFailingMessages(context)
  return {
    async message(message) {
      if (message.author.id === context.account.id) return
      const { place } = message
      const bound = await context.channels.boundTo(stored.name, place)
      if (!(message.isAddressed || bound !== undefined) || !isListenedTo(message, context)) return
      const isHandled =
        (await chatLog.handled(keyOf(message))) ||
        (await failing.run(message, () => handle(message, bound ?? stored.workspaceId)))
      if (!isHandled) await finish(message)
      const seen = { id: message.messageId ?? message.id, atMs: message.sentAtMs }
      await chatLog.markSeen(keyOf(message), seen)
    },
    command: (call) => takeCommand(call, { context, parts, flood }),
    async press(press) {
      if (!isListenedTo(press, context)) return await press.answer(NOT_HERE_TEXT)
      await parts.prompts.press(press)
    },
    releaseHeld: () => releaseHeld(context, parts),
  }
}

async function takeCommand(
  call: CommandCall,
  { context, parts, flood }: { context: SessionContext; parts: ReceiverParts; flood: FloodLimit },
): Promise<void> {
  const { place, author, name, argument, answer } = call
  if (!isListenedTo(call, context)) return await answer(NOT_HERE_TEXT)
  // Prevents that a menu of commands is a way around the limit: each of them reads the store or changes something.
  if (flood.take(place.id) !== 'ok') return await answer(FLOOD_TEXT)
  const standing = await judgePerson(context, author)
  if (!mayInChat(standing, 'message.send'))
    return await answer('You are not paired with this bot yet: write it a message first.')
  await answer(await parts.commands.run({ place, author, name, argument, standing }))
}

async function releaseHeld(context: SessionContext, parts: ReceiverParts): Promise<void> {
  const { stored, chatLog, pairings, log } = context
  for (const held of await pairings.released(stored.name)) {
    const message = JSON.parse(held.message) as IncomingMessage
    const { place } = message
    const known = await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
    const workspaceId = await answeringWorkspace(place, context)
    try {
      await admit({ message, known, workspaceId }, context, parts)
    } catch (error) {
      log.warn({ err: toMoleculeError(error), channel: stored.name }, 'a held message could not be admitted')
      if (toMoleculeError(error).retryable) return
    }
    await pairings.dropHeld(stored.name, held)
  }
}

const NOT_HERE_TEXT = 'I do not answer here.'
const FLOOD_TEXT = 'That is too many messages at once: I do not answer the ones marked as failed. Wait a minute.'

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

/** Keeps the message, and tells its author the code, once. */
async function holdMessage(message: IncomingMessage, context: SessionContext): Promise<void> {
  const { pairings, stored, say } = context
  const { author, place } = message
  const key = { channel: stored.name, person: author.id }
  const request = await pairings.request({ ...key, name: author.name.slice(0, 100) })
  if (request === undefined) return
  await pairings.hold(key, { place: place.id, id: message.id, message: JSON.stringify(message) })
  if (!request.isNew) return
  await say({
    place: place.id,
    replyTo: message.messageId ?? message.id,
    markdown: `Hello ${author.name}. I do not know you yet, so nothing was run. Give my owner this code: **${request.pairing.code}**. Once the owner has approved it, I answer this message.\n\n(The owner types: \`molecule pair approve ${request.pairing.code}\`)`,
  })
}

interface Admission {
  readonly message: IncomingMessage
  readonly known: KnownPlace
  readonly workspaceId: string | undefined
}

async function admit(
  { message, known, workspaceId }: Admission,
  context: SessionContext,
  parts: ReceiverParts,
): Promise<void> {
  const { stored, chatLog, channel, say } = context
  const { place, author, id } = message
  const messageId = message.messageId ?? id
  const key = { channel: stored.name, place: place.id, id }
  const refuse = async (markdown: string) => {
    await channel.react({ place: place.id, messageId }, 'failed')
    await say({ place: place.id, markdown, replyTo: messageId })
    await chatLog.record({ ...key, messageId, person: author.id })
  }
  if (workspaceId === undefined) return await refuse(NO_AGENT_TEXT)
  try {
    const taskId = await sendToWorkspace({ message, known, workspaceId }, context)
    await chatLog.record({ ...key, messageId, person: author.id, taskId })
    parts.follower.follow({ ...key, messageId, person: author.id, taskId, receivedAtMs: message.sentAtMs }, workspaceId)
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    // A copy of a message that was admitted before, in a conversation that has ended since.
    if (error.code === 'idempotency_conflict') return await chatLog.record({ ...key, messageId, person: author.id })
    const text = REFUSALS[error.code]
    if (text === undefined) throw error
    await refuse(text)
  }
}

const NO_AGENT_TEXT =
  'No agent answers in this chat yet. The owner binds one with `/bind <workspace>`, or with `molecule channel bind`.'

/** Failures that a person sees; every other one is tried again by the channel. */
const REFUSALS: Partial<Record<MoleculeError['code'], string>> = {
  not_found: NO_AGENT_TEXT,
  queue_full: 'The agent has too many messages waiting, so I did not take this one. Send it again later.',
  disk_low: 'The disk of the platform is nearly full, so I did not take this message. Send it again later.',
  too_large: 'A file of this message is too large for me, so I did not take it.',
  bad_attachment: 'A file of this message could not be read, so I did not take it. Send it again.',
}

/** The id of the task. */
async function sendToWorkspace(
  { message, known, workspaceId }: Required<Admission>,
  context: SessionContext,
): Promise<string> {
  const { stored, reception } = context
  const { place, author, id } = message
  const parts = await toParts(message, context)
  const waitingTask = await findWaitingTask(known, workspaceId as string, context)
  const key = `${stored.name}-${place.id}-${id}`
  const chat = { channel: stored.name, place: place.id, place_name: place.name, person: author.name }
  const envelope = envelopeOf({
    messageId: key,
    parts,
    contextId: known.contextId,
    ...(waitingTask !== undefined && { taskId: waitingTask }),
    metadata: { chat },
  })
  const { taskId } = await reception.admit({
    workspaceId: workspaceId as string,
    principal: chatPrincipal(stored.name, place.id),
    idempotencyKey: key,
    sender: { kind: author.isBot ? 'program' : 'person', id: author.id, name: author.name, door: stored.kind },
    envelope,
    replyTo: { door: context.door, channel: place.id },
    bytes: parts.reduce((sum, { text = '', raw = '' }) => sum + text.length + raw.length, 0),
  })
  return taskId
}

/**
 * A task of this conversation that asked a question: the message is the answer. A turn that waits for its answer keeps
 * its conversation, and messages that came later wait behind it, so the last message need not be the one that asks.
 */
async function findWaitingTask(
  known: KnownPlace,
  workspaceId: string,
  { chatLog, reception }: SessionContext,
): Promise<string | undefined> {
  const last = await chatLog.lastOf(known)
  const oldest = (await chatLog.openIn(known)).slice(0, OPEN_LOOKED_AT_MAX)
  for (const taskId of new Set([last, ...oldest].map((message) => message?.taskId))) {
    // A place that was bound anew must not answer the question of its former agent.
    const task = taskId && (await reception.task(taskId, { workspaceId, historyLength: 0, artifacts: false }))
    if (!task || task.contextId !== known.contextId) continue
    if (task.status.state === 'TASK_STATE_INPUT_REQUIRED') return taskId
  }
  return undefined
}

async function toParts({ text, files }: IncomingMessage, context: SessionContext): Promise<Part[]> {
  const { channel, signal } = context
  if (files.length > FILES_MAX) throw new MoleculeError('too_large', `a message has at most ${FILES_MAX} files`)
  let bytesLeft = channel.limits.downloadBytesMax
  const attached: Part[] = []
  for (const file of files) {
    const content = await download(() => channel.download(file, bytesLeft, signal))
    bytesLeft -= content.length
    const type = file.mediaType === undefined ? {} : { mediaType: file.mediaType }
    attached.push({ raw: Buffer.from(content).toString('base64'), filename: file.name, ...type })
  }
  const said: Part[] = text.trim() === '' && attached.length > 0 ? [] : [{ text }]
  return [...said, ...attached]
}

const DOWNLOAD_TRIES = 3

async function download(get: () => Promise<Uint8Array>): Promise<Uint8Array> {
  for (let tries = 1; ; tries++) {
    try {
      return await get()
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      if (error.code === 'too_large') throw error
      if (tries === DOWNLOAD_TRIES)
        throw new MoleculeError('bad_attachment', 'a file could not be read', { cause: error })
    }
  }
}
