/**
 * Decisions as buttons: permissions, and budgets that are spent. A prompt is bound to one ask, and a permission is bound to
 * exactly one use of a tool; only owners may press, and an answer counts once. Invariant: a button of an ask that is over
 * changes nothing and says so. What a press says is text from outside: only the stored prompt tells what it is about.
 */
import { toMoleculeError } from '../../../errors.ts'
import { printable, printableName } from '../../../printable.ts'
import { type PendingAskAnswer, readPendingAsks } from '../../../views/needs/pending-asks.ts'
import { judgePerson, mayInChat } from '../access.ts'
import type { ButtonPress, ChatButton, Place } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import { chatPrincipal } from '../store/channels.ts'
import type { HandledMessage, Prompt } from '../store/chat-log.ts'
import { BUDGET_CHOICES, createBudgetPrompts } from './budget-prompts.ts'
import { createPromptPosts, NOT_SHOWN, type PromptPosts } from './prompt-posts.ts'

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
}

const PERMISSION_CHOICES = ['once', 'always', 'deny'] as const
const CHOICES = [...PERMISSION_CHOICES, ...BUDGET_CHOICES] as const
type Choice = (typeof CHOICES)[number]

/** A longer text comes as a file with the same buttons. */
const SUBJECT_CHARACTERS_MAX = 1200
const SUBJECT_FILE = 'request.txt'
const OVER = 'This is over: it was answered elsewhere, or denied because no answer came in time.'

export function createPrompts(context: SessionContext): Prompts {
  const { store, chatLog } = context
  const posts = createPromptPosts(context)
  const budgetPrompts = createBudgetPrompts(context, posts)
  /** Prompts whose button was pressed: the turn goes on before they are closed, and that is no timeout. */
  const answering = new Set<string>()
  const closeBudgets = () => budgetPrompts.closeAnswered((id) => answering.has(id))
  const expire = async (taskId: string, openAskIds: readonly string[]) => {
    for (const prompt of await chatLog.promptsOf(taskId)) {
      if (!answering.has(prompt.id) && !openAskIds.includes(prompt.askId)) await posts.close(prompt, OVER)
    }
  }
  return {
    async ask(message, workspaceId) {
      const asks = await openAsksOf(store, workspaceId, message.taskId)
      if (message.taskId !== undefined)
        await expire(
          message.taskId,
          asks.map(({ id }) => id),
        )
      for (const ask of asks) {
        const subject = printable(ask.subject)
        const asked = `May the agent use **${printableName(ask.tool)}** for exactly`
        const file = isShownWhole(subject) ? undefined : { name: SUBJECT_FILE, text: subject }
        const text = file ? `${asked} what is in ${SUBJECT_FILE}?` : `${asked} this?\n\n\`\`\`\n${subject}\n\`\`\``
        const offered = permissionChoices(ask)
        const buttonsOf = (promptId: string) => permissionButtons(promptId, offered)
        const { place, messageId: replyTo } = message
        await posts.post({ place, taskId: ask.task_id, askId: ask.id, text }, { buttonsOf, replyTo, file })
      }
    },
    question: (message, text) => posts.question(message, text),
    expire: (taskId) => expire(taskId, []),
    tellBudget: (message, reason) => budgetPrompts.tell(message, reason),
    closeBudgets,
    async press(press) {
      const [id = ''] = press.buttonId.split('.')
      answering.add(id)
      try {
        await answer(press, context, posts)
      } finally {
        answering.delete(id)
      }
      await closeBudgets()
    },
  }
}

/** A page ends at a number of bytes: a few tools with a long text fill one. */
async function openAsksOf(
  store: SessionContext['store'],
  workspaceId: string,
  taskId: string | undefined,
): Promise<PendingAskAnswer[]> {
  const asks: PendingAskAnswer[] = []
  for (let after: string | undefined; ; ) {
    const { pending, next } = await readPendingAsks(store, { workspaceId, after })
    asks.push(...pending.filter((ask) => ask.task_id === taskId))
    if (next === undefined) return asks
    after = next
  }
}

/** Services know no longer fence than three backticks, so a text with three of them would be shown without them. */
const isShownWhole = (subject: string): boolean => subject.length <= SUBJECT_CHARACTERS_MAX && !subject.includes('```')

function permissionChoices(ask: PendingAskAnswer): readonly Choice[] {
  return ask.would_cover === undefined ? ['once', 'deny'] : PERMISSION_CHOICES
}

const PERMISSION_BUTTONS = {
  once: { label: 'Allow once', style: 'good' },
  always: { label: 'Always', style: 'plain' },
  deny: { label: 'Deny', style: 'bad' },
} as const

const permissionButtons = (id: string, offered: readonly Choice[]): ChatButton[] =>
  PERMISSION_CHOICES.filter((choice) => offered.includes(choice)).map((choice) => ({
    id: `${id}.${choice}`,
    ...PERMISSION_BUTTONS[choice],
  }))

async function answer(press: ButtonPress, context: SessionContext, posts: PromptPosts): Promise<void> {
  const [id = '', name = ''] = press.buttonId.split('.')
  const choice = CHOICES.find((known) => known === name)
  const found = await context.chatLog.prompt(id)
  if (found === undefined || choice === undefined || !isWhereItWasPosted(found, press, context))
    return await press.answer('This request is over.')
  // A crash may have lost the answer to the send, and with it the id of the message.
  const prompt = { ...found, messageId: press.messageId }
  if (!mayInChat(await judgePerson(context, press.author), 'pending.answer'))
    return await press.answer('Only an owner of this bot may answer that.')
  if (!(await isOfAgentHere(prompt, press.place, context))) return await press.answer(OTHER_AGENT)
  try {
    const offered: readonly Choice[] = await offersOf(prompt, press.place, context)
    if (!offered.includes(choice)) return await press.answer('This request does not offer that answer.')
    const done = await decide(prompt, { choice, press }, context)
    await posts.close(prompt, `${done} by ${press.author.name}.`)
    await press.answer(done)
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code === 'internal' || error.retryable) throw error
    // The amount of the button is spent by now: another amount may still be given elsewhere.
    if (error.code === 'invalid_request') return await press.answer(`That is not possible: ${error.message}.`)
    await posts.close(prompt, `This is over: ${error.message}.`)
    await press.answer(`Too late: ${error.message}.`)
  }
}

const OTHER_AGENT = 'Another agent answers in this chat by now: answer this with `molecule pending`.'

/**
 * Prevents that an owner of one bot, or a person in another chat, answers with the payload of a button that they never
 * saw: a press counts only on the message that was posted, in its place, of this bot.
 */
function isWhereItWasPosted(prompt: Prompt, press: ButtonPress, { stored }: SessionContext): boolean {
  if (prompt.channel !== stored.name || prompt.place !== press.place.id) return false
  return prompt.messageId === undefined || prompt.messageId === press.messageId
}

/** False when the chat is bound to another workspace by now. A budget may also be asked in the direct chat of an owner. */
async function isOfAgentHere({ taskId, budget }: Prompt, place: Place, context: SessionContext): Promise<boolean> {
  const messages = await context.chatLog.ofTask(taskId)
  const isHere = messages.some((message) => message.channel === context.stored.name && message.place === place.id)
  if (!isHere) return budget !== undefined && place.isDirect
  const workspaceId = await answeringWorkspace(place, context)
  if (workspaceId === undefined) return false
  const task = await context.reception.task(taskId, { workspaceId, historyLength: 0, artifacts: false })
  return task !== undefined
}

/** The answers whose buttons the prompt has. An ask that is over has all of them: the answer says how it ended. */
async function offersOf({ taskId, askId, budget, text }: Prompt, place: Place, context: SessionContext) {
  if (budget !== undefined) return budget.toUsd === undefined ? [] : BUDGET_CHOICES
  const asks = await openAsksOf(context.store, (await answeringWorkspace(place, context)) ?? '', taskId)
  const ask = asks.find(({ id }) => id === askId)
  if (ask !== undefined && text.endsWith(NOT_SHOWN)) return ['deny'] as const
  return ask === undefined ? PERMISSION_CHOICES : permissionChoices(ask)
}

/** What was done, for people. Throws when it is too late. */
async function decide(
  { askId, budget }: Prompt,
  { choice, press }: { readonly choice: Choice; readonly press: ButtonPress },
  { pending, budgets, stored }: SessionContext,
): Promise<string> {
  const answerer = {
    name: press.author.name,
    principal: chatPrincipal(stored.name, press.author.id),
    door: stored.kind,
  }
  if (budget !== undefined) {
    if (choice === 'stop') await budgets.stop(budget.id, answerer)
    else await budgets.raise(budget.id, budget.toUsd ?? 0, answerer)
    return choice === 'stop' ? 'Stopped' : `Raised to $${budget.toUsd}`
  }
  if (choice === 'always') await pending.allowAlways(askId, answerer)
  else await pending.answer(askId, choice === 'once' ? 'allowed' : 'denied', answerer)
  return PERMISSION_DONE[choice] ?? 'Denied'
}

const PERMISSION_DONE: Partial<Record<Choice, string>> = { once: 'Allowed once', always: 'Always allowed' }
