/**
 * An answer to a prompt: by a button, a reaction or a command. Invariant: it counts once, only of an owner, and only for what
 * was shown to that owner. What a press says is text from outside: only the stored prompt tells what it is about.
 */
import type { Action } from '../../../api/who-may.ts'
import { toMoleculeError } from '../../../errors.ts'
import { readTaskWork } from '../../../views/task-work.ts'
import { judgePerson, mayInChat } from '../access.ts'
import type { Author, Place } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import { chatPrincipal } from '../store/channels.ts'
import type { Prompt } from '../store/prompt-log.ts'
import { BUDGET_CHOICES } from './budget-prompts.ts'
import { PAIRING_CHOICES } from './pairing-prompts.ts'
import { openAsksOf, PERMISSION_CHOICES, permissionChoices } from './permission-prompts.ts'
import { NOT_SHOWN, type PromptPosts } from './prompt-posts.ts'
import { RESEND_CHOICES } from './resend-prompts.ts'

const CHOICES = [...PERMISSION_CHOICES, ...BUDGET_CHOICES, ...PAIRING_CHOICES, ...RESEND_CHOICES] as const
export type PromptChoice = (typeof CHOICES)[number]

export const choiceNamed = (name: string): PromptChoice | undefined => CHOICES.find((known) => known === name)

/** What a reaction or a command means for a prompt. */
export type PlainAnswer = 'allow' | 'refuse'

/** The first and the last button of the prompt. */
export function choiceOf({ budget, pairing, resend }: Prompt, answer: PlainAnswer): PromptChoice {
  if (resend !== undefined) return answer === 'allow' ? 'resend' : 'arrived'
  if (budget !== undefined) return answer === 'allow' ? 'raise' : 'stop'
  if (pairing !== undefined) return answer === 'allow' ? 'allow' : 'ignore'
  return answer === 'allow' ? 'once' : 'deny'
}

/** An answer on the message of the prompt, in its place, of this bot: the caller has checked that. */
export interface PromptAnswer {
  readonly prompt: Prompt
  readonly choice: PromptChoice
  readonly place: Place
  readonly author: Author
}

/** What an answer needs of a person. */
export const actionOf = ({ pairing }: Prompt): Action => (pairing === undefined ? 'pending.answer' : 'pairing.handle')

export interface AnswerResult {
  /** The prompt itself shows it, too. */
  readonly isDone: boolean
  /** For the person: what was done, or why nothing was. */
  readonly text: string
}

const refused = (text: string): AnswerResult => ({ isDone: false, text })

export async function answerPrompt(
  given: PromptAnswer,
  context: SessionContext,
  posts: PromptPosts,
): Promise<AnswerResult> {
  const { prompt, choice, place } = given
  if (!mayInChat(await judgePerson(context, given.author), actionOf(prompt)))
    return refused('Only an owner of this bot may answer that.')
  if (!(await isOfAgentHere(prompt, place, context))) return refused(OTHER_AGENT)
  const closeAll = async (sentence: string) => {
    for (const one of await context.promptLog.ofAsk(prompt.askId))
      await posts.close(one.id === prompt.id ? prompt : one, sentence)
  }
  try {
    const offered: readonly PromptChoice[] = await offersOf(prompt, context)
    if (!offered.includes(choice)) return refused(NOT_OFFERED)
    const name = await nameOf(given.author, context)
    const done = await decide({ ...given, author: { ...given.author, name } }, context)
    await closeAll(`${done} by ${name}.`)
    return { isDone: true, text: done }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code === 'internal' || error.retryable) throw error
    // The amount of the button is spent by now: another amount may still be given elsewhere.
    if (error.code === 'invalid_request') return refused(`That is not possible: ${error.message}.`)
    await closeAll(`This is over: ${error.message}.`)
    return { isDone: true, text: `Too late: ${error.message}.` }
  }
}

const NOT_OFFERED = 'This request does not offer that answer.'
const OTHER_AGENT = 'Another agent answers in this chat by now: answer this with `molecule pending`.'

/** A service does not name the person of every reaction. */
async function nameOf({ id, name }: Author, { pairings, stored }: SessionContext): Promise<string> {
  if (name !== '') return name
  return (await pairings.find({ channel: stored.name, person: id }))?.name ?? id
}

/**
 * False when the chat is bound to another workspace by now. In the direct chat of an owner a prompt names its agent and the
 * chat that it is for, so the binding of that direct chat plays no part.
 */
async function isOfAgentHere({ taskId, pairing }: Prompt, place: Place, context: SessionContext): Promise<boolean> {
  if (pairing !== undefined) return true
  const messages = await context.chatLog.ofTask(taskId)
  const isHere = messages.some((message) => message.channel === context.stored.name && message.place === place.id)
  if (!isHere) return place.isDirect
  const workspaceId = await answeringWorkspace(place, context)
  if (workspaceId === undefined) return false
  const task = await context.reception.task(taskId, { workspaceId, historyLength: 0, artifacts: false })
  return task !== undefined
}

/** The answers whose buttons the prompt has. An ask that is over has all of them: the answer says how it ended. */
async function offersOf(
  { taskId, askId, budget, pairing, resend, text }: Prompt,
  { store }: SessionContext,
): Promise<readonly PromptChoice[]> {
  if (resend !== undefined) return RESEND_CHOICES
  if (pairing !== undefined) return PAIRING_CHOICES
  if (budget !== undefined) return budget.toUsd === undefined ? [] : BUDGET_CHOICES
  const work = await readTaskWork(store, taskId)
  const asks = work === undefined ? [] : await openAsksOf(store, work.workspaceId, taskId)
  const ask = asks.find(({ id }) => id === askId)
  if (ask !== undefined && text.endsWith(NOT_SHOWN)) return ['deny']
  return ask === undefined ? PERMISSION_CHOICES : permissionChoices(ask)
}

/** What was done, for people. Throws when it is too late. */
async function decide(
  { prompt: { askId, budget, pairing, resend }, choice, author }: PromptAnswer,
  { pending, budgets, deliveries, pairings, stored, letIn }: SessionContext,
): Promise<string> {
  const answerer = { name: author.name, principal: chatPrincipal(stored.name, author.id), door: stored.kind }
  if (pairing !== undefined) {
    const state = choice === 'allow' ? 'approved' : 'denied'
    // An owner of the bot lets people in. Only an admin makes an owner.
    await pairings.decide(pairing.code, { state, role: 'user', by: `${author.name} in ${stored.name}`, isFirst: true })
    letIn()
    return state === 'approved' ? 'Allowed' : 'Ignored'
  }
  if (resend !== undefined) {
    const decision = choice === 'resend' ? 'resend' : 'dismiss'
    await deliveries.resolve(resend.deliveryId, decision, `${author.name} in ${stored.name}`)
    return choice === 'resend' ? 'Sent again' : 'Marked as arrived'
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

const PERMISSION_DONE: Partial<Record<PromptChoice, string>> = { once: 'Allowed once', always: 'Always allowed' }
