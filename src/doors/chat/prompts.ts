/**
 * Decisions as buttons: permissions, and budgets that are spent. A prompt is bound to one ask, and a permission is bound to
 * exactly one use of a tool; only owners may press, and an answer counts once. Invariant: a button of an ask that is over
 * changes nothing and says so.
 */
import { toMoleculeError } from '../../errors.ts'
import type { PendingAsk } from '../../inbox/owners.ts'
import type { HandledMessage, Prompt } from '../../workspaces/chat-log.ts'
import { judgePerson } from './access.ts'
import { BUDGET_CHOICES, createBudgetPrompts } from './budget-prompts.ts'
import type { ButtonPress, ChatButton } from './channel.ts'
import type { SessionContext } from './chat-context.ts'
import { createPromptPosts, type PromptPosts } from './prompt-posts.ts'

export interface Prompts {
  /** Shows the open permission asks of the message's task, each once, and closes the prompts of its other asks. */
  ask(message: HandledMessage, workspaceId: string): Promise<void>
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

const SUBJECT_CHARACTERS_MAX = 1200
const OVER = 'This is over: it was answered elsewhere, or denied because no answer came in time.'

export function createPrompts(context: SessionContext): Prompts {
  const { pending, chatLog } = context
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
      const asks = await openAsksOf(pending, workspaceId, message.taskId)
      if (message.taskId !== undefined)
        await expire(
          message.taskId,
          asks.map(({ id }) => id),
        )
      for (const ask of asks) {
        const subject = ask.subject.slice(0, SUBJECT_CHARACTERS_MAX)
        const cut = subject.length < ask.subject.length
        const text = `May the agent use **${ask.tool}** for exactly this?\n\n${fenced(subject)}${cut ? '\n(cut; see the whole text with `molecule pending`)' : ''}`
        const buttonsOf = (promptId: string) =>
          permissionButtons(promptId).filter(({ id }) =>
            cut ? id.endsWith('.deny') : ask.wouldCover !== undefined || !id.endsWith('.always'),
          )
        const { place, messageId: replyTo } = message
        await posts.post({ place, taskId: ask.taskId, askId: ask.id, text }, { buttonsOf, replyTo })
      }
    },
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
  pending: SessionContext['pending'],
  workspaceId: string,
  taskId: string | undefined,
): Promise<PendingAsk[]> {
  const asks: PendingAsk[] = []
  for (let after: string | undefined; ; ) {
    const { rows, next } = await pending.list({ workspaceId, ...(after !== undefined && { after }) })
    asks.push(...rows.filter((ask) => ask.taskId === taskId))
    if (next === undefined) return asks
    after = next
  }
}

const permissionButtons = (id: string): ChatButton[] => [
  { id: `${id}.once`, label: 'Allow once', style: 'good' },
  { id: `${id}.always`, label: 'Always', style: 'plain' },
  { id: `${id}.deny`, label: 'Deny', style: 'bad' },
]

/** A fence that the text itself cannot close. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}

async function answer(press: ButtonPress, context: SessionContext, posts: PromptPosts): Promise<void> {
  const [id = '', name = ''] = press.buttonId.split('.')
  const choice = CHOICES.find((known) => known === name)
  const found = await context.chatLog.prompt(id)
  if (found === undefined || choice === undefined) return await press.answer('This request is over.')
  // A crash may have lost the answer to the send, and with it the id of the message.
  const prompt = { ...found, messageId: press.messageId }
  if ((await judgePerson(context, press.author)) !== 'owner')
    return await press.answer('Only an owner of this bot may answer that.')
  try {
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

/** What was done, for people. Throws when it is too late. */
async function decide(
  { askId, budget }: Prompt,
  { choice, press }: { readonly choice: Choice; readonly press: ButtonPress },
  { pending, budgets, stored }: SessionContext,
): Promise<string> {
  const answerer = { name: press.author.name, principal: `${stored.name}:${press.author.id}`, door: stored.kind }
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
