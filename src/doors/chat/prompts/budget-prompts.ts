/**
 * Budgets that are spent (TW-10). The chat of a message that waits for a budget says so once, and owners get buttons that
 * raise or stop it. The buttons go where an owner reads them: to the chat of an owner's own message, else to the direct
 * chats of the owners, else to a group in which an owner writes.
 */
import {
  type BudgetAskAnswer,
  raiseSuggestion,
  readBudgetAsks,
  readBudgetWait,
} from '../../../views/needs/budget-asks.ts'
import { judgePerson } from '../access.ts'
import type { ChatButton, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { HandledMessage, Prompt } from '../store/chat-log.ts'
import type { PromptPosts } from './prompt-posts.ts'

export interface BudgetPrompts {
  /** True when the message waits for a budget. The chat says so, and the owners are asked, once for each asking. */
  tell(message: HandledMessage, reason: string): Promise<boolean>
  /** Closes the prompts of budgets that were answered, or that nothing waits for any more. */
  closeAnswered(isAnswering: (promptId: string) => boolean): Promise<void>
}

export const BUDGET_CHOICES = ['raise', 'stop'] as const

const OVER = 'This is over: the budget was raised or stopped, or nothing waits for it any more.'

export function createBudgetPrompts(context: SessionContext, posts: PromptPosts): BudgetPrompts {
  const { chatLog, store, stored, workspaces } = context
  return {
    async tell(message, reason) {
      const { taskId = '', place, messageId } = message
      const wait = await readBudgetWait(store, taskId)
      if (wait === undefined) return false
      const { budgetId, askedAtMs, isAsked } = wait
      const askIn = (there: string) =>
        ['budget', budgetId, askedAtMs, isAsked ? 'asked' : 'stopped', stored.name, there].join(' ')
      const told = await chatLog.promptOfAsk(askIn(place))
      if (told !== undefined) return true
      const [ask] = isAsked ? await readBudgetAsks(store, { id: budgetId }) : []
      // An owner answered just now: the message goes on, or is cancelled.
      if (isAsked && ask === undefined) return true
      const askedPlaces = ask === undefined ? [] : await placesToAsk(message, context)
      const post = async (there: string, text: string) => {
        const isOffered = ask !== undefined && askedPlaces.includes(there)
        const budget = { id: budgetId, askedAtMs, isAsked, ...(isOffered && { toUsd: raiseSuggestion(ask) }) }
        const buttonsOf = (id: string) => (isOffered ? budgetButtons(id, ask) : [])
        const reply = there === place ? { replyTo: messageId } : {}
        await posts.post({ place: there, taskId, askId: askIn(there), text, budget }, { buttonsOf, ...reply })
      }
      // The chat of the message comes last: once it is told, nothing is left to do.
      for (const there of askedPlaces.filter((one) => one !== place)) {
        const name = (await workspaces.get(ask?.workspace_id ?? ''))?.name ?? 'a workspace'
        await post(there, `**${name}** waits: ${ask?.text}. Raise the budget, or stop what waits?`)
      }
      await post(place, `Your message waits: ${reason.replace(/^waiting: /, '')}.`)
      return true
    },
    async closeAnswered(isAnswering) {
      for (const prompt of await chatLog.budgetPrompts(stored.name)) {
        if (!isAnswering(prompt.id) && !(await isOpen(prompt, context))) await posts.close(prompt, OVER)
      }
    },
  }
}

const budgetButtons = (id: string, ask: BudgetAskAnswer): ChatButton[] => [
  { id: `${id}.raise`, label: `Raise to $${raiseSuggestion(ask)}`, style: 'good' },
  { id: `${id}.stop`, label: 'Stop', style: 'bad' },
]

/** A budget of a day that was raised may be asked about again: that is another question. */
async function isOpen({ budget }: Prompt, { store }: SessionContext): Promise<boolean> {
  const [ask] = budget === undefined ? [] : await readBudgetAsks(store, { id: budget.id })
  return ask !== undefined && Date.parse(ask.asked_at) === budget?.askedAtMs
}

/** Where the buttons are shown. People who are no owners see buttons only in a chat that they share with an owner. */
async function placesToAsk({ person, place }: HandledMessage, context: SessionContext): Promise<readonly string[]> {
  if ((await judgePerson(context, { id: person })) === 'owner') return [place]
  const known = await context.chatLog.placesOfOwners(context.stored.name)
  const direct = new Map<string, string>()
  for (const one of known) {
    const { isDirect } = JSON.parse(one.description) as Place
    if (isDirect && !direct.has(one.person)) direct.set(one.person, one.place)
  }
  if (direct.size > 0) return [...direct.values()]
  return known.some((one) => one.place === place) ? [place] : []
}
