/**
 * Budgets that are spent (TW-10). The chat of a message that waits for a budget says so once, and owners get buttons that
 * raise or stop it.
 */
import {
  type BudgetAskAnswer,
  raiseSuggestion,
  readBudgetAsks,
  readBudgetWait,
} from '../../../views/needs/budget-asks.ts'
import type { ChatButton } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import type { BudgetPrompt, Prompt } from '../store/prompt-log.ts'
import { placesToAsk, quoted } from './ask-places.ts'
import type { PromptPosts } from './prompt-posts.ts'

export interface BudgetPrompts {
  /** True when the message waits for a budget. The chat says so, and the owners are asked, once for each asking. */
  tell(message: HandledMessage, reason: string): Promise<boolean>
  /** Asks the owners who can be asked by now. The chat of the message was told before. */
  offer(message: HandledMessage): Promise<void>
  /** Closes the prompts of budgets that were answered, or that nothing waits for any more. */
  closeAnswered(prompts: readonly Prompt[], isAnswering: (prompt: Prompt) => boolean): Promise<void>
}

export const BUDGET_CHOICES = ['raise', 'stop'] as const

const OVER = 'This is over: the budget was raised or stopped, or nothing waits for it any more.'

/** One question about a budget. */
interface Asking {
  readonly budget: BudgetPrompt
  /** Undefined: it needs no answer. */
  readonly ask: BudgetAskAnswer | undefined
  askIdIn(place: string): string
}

export function createBudgetPrompts(context: SessionContext, posts: PromptPosts): BudgetPrompts {
  const { promptLog, store, stored, workspaces } = context
  const readAsking = async (taskId: string): Promise<Asking | undefined> => {
    const wait = await readBudgetWait(store, taskId)
    if (wait === undefined) return undefined
    const { budgetId, askedAtMs, isAsked } = wait
    const [ask] = isAsked ? await readBudgetAsks(store, { id: budgetId }) : []
    const askIdIn = (place: string) =>
      ['budget', budgetId, askedAtMs, isAsked ? 'asked' : 'stopped', stored.name, place].join(' ')
    return { budget: { id: budgetId, askedAtMs, isAsked }, ask, askIdIn }
  }
  const postButtons = async (message: HandledMessage, { budget, ask, askIdIn }: Asking, given?: string) => {
    if (ask === undefined) return []
    const { place, taskId = '', messageId } = message
    const places = await placesToAsk(message, context)
    const name = (await workspaces.get(ask.workspace_id))?.name ?? 'a workspace'
    // The chat of the message comes last: once it is told, nothing is left to do.
    for (const there of [...places.filter((one) => one !== place), ...places.filter((one) => one === place)]) {
      const text =
        there === place && given !== undefined
          ? given
          : `${quoted(name)} waits: ${ask.text}. Raise the budget, or stop what waits?`
      const offered = { ...budget, toUsd: raiseSuggestion(ask) }
      const replyTo = there === place ? messageId : undefined
      await posts.post(
        { place: there, taskId, askId: askIdIn(there), text, budget: offered },
        { buttonsOf: (id) => budgetButtons(id, ask), replyTo },
      )
    }
    return places
  }
  return {
    async tell(message, reason) {
      const { taskId = '', place, messageId: replyTo } = message
      const asking = await readAsking(taskId)
      if (asking === undefined) return false
      const askId = asking.askIdIn(place)
      const isTold = (await promptLog.ofAsk(askId)).length > 0
      // An owner answered just now: the message goes on, or is cancelled.
      const isAnswered = asking.budget.isAsked && asking.ask === undefined
      if (isTold || isAnswered) return true
      const text = `Your message waits: ${reason.replace(/^waiting: /, '')}.`
      const places = await postButtons(message, asking, text)
      if (places.includes(place)) return true
      const notice = { place, taskId, askId, text, budget: asking.budget, isNotice: true }
      await posts.post(notice, { buttonsOf: () => [], replyTo })
      return true
    },
    async offer(message) {
      const asking = await readAsking(message.taskId ?? '')
      if (asking !== undefined) await postButtons(message, asking)
    },
    async closeAnswered(prompts, isAnswering) {
      for (const prompt of prompts) {
        if (prompt.budget?.isAsked !== true || isAnswering(prompt)) continue
        if (!(await isOpen(prompt.budget, context))) await posts.close(prompt, OVER)
      }
    },
  }
}

const budgetButtons = (id: string, ask: BudgetAskAnswer): ChatButton[] => [
  { id: `${id}.raise`, label: `Raise to $${raiseSuggestion(ask)}`, style: 'good' },
  { id: `${id}.stop`, label: 'Stop', style: 'bad' },
]

/** A budget of a day that was raised may be asked about again: that is another question. */
async function isOpen({ id, askedAtMs }: BudgetPrompt, { store }: SessionContext): Promise<boolean> {
  const [ask] = await readBudgetAsks(store, { id })
  return ask !== undefined && Date.parse(ask.asked_at) === askedAtMs
}
