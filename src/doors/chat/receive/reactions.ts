/**
 * Reactions as answers: 👍 and 👎 on the message of a prompt, and 🛑 on a message whose task runs. Each counts as the button
 * or the command does: the same person, the same chat, the same agent. All other reactions are for people.
 */
import { isFinal } from '../../../protocol/a2a.ts'
import { judgePerson, mayInChat } from '../access.ts'
import type { IncomingReaction, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import { ALLOW_SIGN, REFUSE_SIGN, STOP_SIGN } from '../emoji.ts'
import type { PlainAnswer } from '../prompts/answer-prompt.ts'
import type { Prompts } from '../prompts/prompts.ts'

const ANSWERS: Readonly<Record<string, PlainAnswer>> = { [ALLOW_SIGN]: 'allow', [REFUSE_SIGN]: 'refuse' }

export async function takeReaction(
  reaction: IncomingReaction,
  context: SessionContext,
  prompts: Pick<Prompts, 'ofMessage' | 'mayAnswer' | 'answer'>,
): Promise<void> {
  if (reaction.emoji === STOP_SIGN) return await stopTask(reaction, context)
  const given = ANSWERS[reaction.emoji]
  if (given === undefined) return
  const { author, messageId } = reaction
  for (const prompt of await prompts.ofMessage(messageId)) {
    const place = await placeOf(prompt.place, reaction, context)
    // A person who may not answer only shows an opinion: the bot stays silent.
    if (place === undefined || !(await prompts.mayAnswer(prompt, author))) continue
    const { isDone, text } = await prompts.answer(prompt, given, { place, author })
    if (!isDone) await context.say({ place: place.id, markdown: text, replyTo: messageId })
  }
}

/** For whoever may use /stop there: the task of this message only. */
async function stopTask(reaction: IncomingReaction, context: SessionContext): Promise<void> {
  const { chatLog, reception, stored } = context
  if (!mayInChat(await judgePerson(context, reaction.author), 'task.cancel')) return
  for (const message of await chatLog.openAt(stored.name, reaction.messageId)) {
    const { taskId = '' } = message
    if ((await placeOf(message.place, reaction, context)) === undefined) continue
    const state = (await reception.task(taskId, { historyLength: 0, artifacts: false }))?.status.state
    if (state !== undefined && !isFinal(state)) await reception.cancel(taskId)
  }
}

/** The place of the message; undefined when the reaction was put on a message of another place. */
async function placeOf(
  id: string,
  { place, isInAnyThread }: IncomingReaction,
  { chatLog, stored }: SessionContext,
): Promise<Place | undefined> {
  if (id === place.id) return place
  if (isInAnyThread !== true) return undefined
  const known = await chatLog.find({ channel: stored.name, place: id })
  const found = known && (JSON.parse(known.description) as Place)
  return found?.parentId === place.id ? found : undefined
}
