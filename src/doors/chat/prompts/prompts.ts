/**
 * Decisions in a chat: permissions, budgets that are spent, people who want to be let in. A prompt is bound to one ask and
 * is shown where an owner can answer it. Invariant: a prompt of an ask that is over changes nothing and says so.
 */
import { toMoleculeError } from '../../../errors.ts'
import { readTaskWork } from '../../../views/task-work.ts'
import { createWakeUp, type WakeUp } from '../../../wait.ts'
import { judgePerson, mayInChat } from '../access.ts'
import type { Author, ButtonPress, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import type { Prompt } from '../store/prompt-log.ts'
import {
  type AnswerResult,
  actionOf,
  answerPrompt,
  choiceNamed,
  choiceOf,
  type PlainAnswer,
  type PromptAnswer,
} from './answer-prompt.ts'
import { createBudgetPrompts } from './budget-prompts.ts'
import { createOwnerWatch } from './owner-watch.ts'
import { createPairingPrompts } from './pairing-prompts.ts'
import { createPermissionPrompts } from './permission-prompts.ts'
import { createPromptPosts } from './prompt-posts.ts'
import { createResendPrompts } from './resend-prompts.ts'

export interface Prompts {
  /** Shows the open permission asks of the message's task, each once, and closes the prompts of its other asks. */
  ask(message: HandledMessage, workspaceId: string): Promise<void>
  /** The agent asks the person of this message. */
  question(message: HandledMessage, text: string): Promise<void>
  /** The task goes on: prompts of it that were not answered here are over. */
  expire(taskId: string): Promise<void>
  /** True when the message waits for a budget, for the given reason: the chat says so, once. */
  tellBudget(message: HandledMessage, reason: string): Promise<boolean>
  /** A budget may have been answered elsewhere: its prompts are over. */
  closeBudgets(): Promise<void>
  press(press: ButtonPress): Promise<void>
  /** The prompts of a message of the bot, in whatever place. */
  ofMessage(messageId: string): Promise<readonly Prompt[]>
  /** The prompts of the place that have buttons. One without the id of its message may not be shown yet. */
  inPlace(place: Place): Promise<readonly Prompt[]>
  answer(prompt: Prompt, answer: PlainAnswer, by: Pick<PromptAnswer, 'place' | 'author'>): Promise<AnswerResult>
  /** True when the person may answer the prompt. */
  mayAnswer(prompt: Prompt, author: Author): Promise<boolean>
  /** An owner is in this place: the owner gets what is open. */
  ownerIn(place: Place, owner: Author): Promise<void>
  /** A person waits to be let in, or a pairing was decided. */
  look(): void
  /** Keeps the prompts current until the session ends. Never rejects. */
  keepCurrent(): Promise<void>
}

/** What another process of this store decided is noticed within this time. */
const LOOK_MS = 5000

export function createPrompts(context: SessionContext): Prompts {
  const { store, chatLog, promptLog, stored } = context
  const posts = createPromptPosts(context)
  const budgetPrompts = createBudgetPrompts(context, posts)
  const pairingPrompts = createPairingPrompts(context, posts)
  const resendPrompts = createResendPrompts(context, posts)
  const owners = createOwnerWatch(context)
  const wakeUp = createWakeUp()
  /** Asks that are being answered here: the turn goes on before their prompts are closed, and that is no timeout. */
  const answering = new Set<string>()
  const isAnswering = ({ askId }: Prompt) => answering.has(askId)
  const permissions = createPermissionPrompts(context, posts, answering)
  const closeBudgets = async () => budgetPrompts.closeAnswered(await promptLog.ofChannel(stored.name), isAnswering)
  /** Who may answer has changed: what is open is shown where the owners are now. */
  const askAgain = async (open: readonly Prompt[]) => {
    for (const taskId of new Set(open.map((prompt) => prompt.taskId))) {
      const message = (await chatLog.ofTask(taskId)).findLast(({ channel }) => channel === stored.name)
      const work = await readTaskWork(store, taskId)
      if (message === undefined || work === undefined) continue
      await permissions.ask(message, work.workspaceId)
      await budgetPrompts.offer(message)
    }
  }
  const update = async () => {
    const open = await promptLog.ofChannel(stored.name)
    await budgetPrompts.closeAnswered(open, isAnswering)
    await pairingPrompts.update(open, isAnswering)
    await resendPrompts.update(open, isAnswering)
    await owners.whenChanged(() =>
      askAgain(open.filter(({ pairing, resend }) => pairing === undefined && resend === undefined)),
    )
  }
  const answer = async (given: PromptAnswer) => {
    const { askId } = given.prompt
    answering.add(askId)
    try {
      return await answerPrompt(given, context, posts)
    } finally {
      answering.delete(askId)
      // The prompts of a budget in other places may be over now.
      wakeUp.wake()
    }
  }
  return {
    ask: permissions.ask,
    question: (message, text) => posts.question(message, text),
    expire: permissions.expire,
    tellBudget: (message, reason) => budgetPrompts.tell(message, reason),
    closeBudgets,
    async press(press) {
      const [id = '', name = ''] = press.buttonId.split('.')
      const [found, choice] = [await promptLog.find(id), choiceNamed(name)]
      if (found === undefined || choice === undefined || !isWhereItWasPosted(found, press, context))
        return await press.answer('This request is over.')
      // A crash may have lost the answer to the send, and with it the id of the message.
      const prompt = { ...found, messageId: press.messageId }
      const { text } = await answer({ prompt, choice, place: press.place, author: press.author })
      await press.answer(text)
    },
    ofMessage: (messageId) => promptLog.ofMessage(stored.name, messageId),
    inPlace: (place) => promptLog.inPlace({ channel: stored.name, place: place.id }),
    answer: (prompt, given, by) => answer({ prompt, choice: choiceOf(prompt, given), ...by }),
    mayAnswer: async (prompt, author) => mayInChat(await judgePerson(context, author), actionOf(prompt)),
    async ownerIn(place, owner) {
      if (await owners.seen(place, owner)) wakeUp.wake()
    },
    look: wakeUp.wake,
    keepCurrent: () => keepUpdating(update, wakeUp, context),
  }
}

async function keepUpdating(
  update: () => Promise<void>,
  wakeUp: WakeUp,
  { clock, signal, log, stored }: SessionContext,
): Promise<void> {
  while (!signal.aborted) {
    await update().catch((error) =>
      log.warn({ err: toMoleculeError(error), channel: stored.name }, 'the prompts of a channel could not be updated'),
    )
    await wakeUp.wait(signal, (callback) => clock.after(LOOK_MS, callback))
  }
}

/**
 * Prevents that an owner of one bot, or a person in another chat, answers with the payload of a button that they never
 * saw: a press counts only on the message that was posted, in its place, of this bot.
 */
function isWhereItWasPosted(prompt: Prompt, press: ButtonPress, { stored }: SessionContext): boolean {
  if (prompt.channel !== stored.name || prompt.place !== press.place.id || prompt.isNotice) return false
  return prompt.messageId === undefined || prompt.messageId === press.messageId
}
