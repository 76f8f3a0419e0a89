/**
 * Permissions as buttons. A prompt is bound to one ask, which is bound to exactly one use of a tool; only owners may press,
 * and an answer counts once. Invariant: a button of an ask that is over changes nothing and says so.
 */
import { randomBytes } from 'node:crypto'
import { toMoleculeError } from '../../errors.ts'
import type { HandledMessage, Prompt } from '../../workspaces/chat-log.ts'
import { judgePerson } from './access.ts'
import type { ButtonPress, ChatButton } from './channel.ts'
import type { SessionContext } from './chat-context.ts'

export interface Prompts {
  /** Shows the open permission asks of the message's task; an ask that is shown already is not shown again. */
  ask(message: HandledMessage, workspaceId: string): Promise<void>
  /** The task goes on: prompts of it that were not answered here are over. */
  expire(taskId: string): Promise<void>
  press(press: ButtonPress): Promise<void>
}

const CHOICES = ['once', 'always', 'deny'] as const
type Choice = (typeof CHOICES)[number]

const SUBJECT_CHARACTERS_MAX = 1200

export function createPrompts(context: SessionContext): Prompts {
  const { pending, chatLog, stored, say } = context
  /** Prompts whose button was pressed: the turn goes on before they are closed, and that is no timeout. */
  const answering = new Set<string>()
  return {
    async ask(message, workspaceId) {
      const { rows } = await pending.list({ workspaceId })
      for (const ask of rows.filter(({ taskId }) => taskId === message.taskId)) {
        const subject = ask.subject.slice(0, SUBJECT_CHARACTERS_MAX)
        const cut = subject.length < ask.subject.length
        const text = `May the agent use **${ask.tool}** for exactly this?\n\n${fenced(subject)}${cut ? '\n(cut; see the whole text with `molecule pending`)' : ''}`
        const draft = { id: randomBytes(8).toString('hex'), channel: stored.name, place: message.place }
        const prompt = await chatLog.addPrompt({ ...draft, taskId: ask.taskId, askId: ask.id, text })
        if (prompt.messageId !== undefined) continue
        const buttons = buttonsOf(prompt.id).filter(({ id }) =>
          cut ? id.endsWith('.deny') : ask.wouldCover !== undefined || !id.endsWith('.always'),
        )
        const sent = await say({ place: message.place, markdown: text, replyTo: message.messageId, buttons })
        if (sent !== undefined) await chatLog.setPromptMessage(prompt.id, sent)
      }
    },
    async expire(taskId) {
      for (const prompt of await chatLog.promptsOf(taskId)) {
        if (answering.has(prompt.id)) continue
        await close(
          prompt,
          'This is over: it was answered elsewhere, or denied because no answer came in time.',
          context,
        )
      }
    },
    async press(press) {
      const [id = ''] = press.buttonId.split('.')
      answering.add(id)
      try {
        await answer(press, context)
      } finally {
        answering.delete(id)
      }
    },
  }
}

const buttonsOf = (id: string): ChatButton[] => [
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

async function close(prompt: Prompt, sentence: string, context: SessionContext): Promise<void> {
  const { chatLog, channel, inPlace, signal } = context
  await chatLog.removePrompt(prompt.id)
  const { place, messageId, text } = prompt
  if (messageId === undefined) return
  const rendered = channel.render(`${text}\n\n${sentence}`)[0] ?? sentence
  await inPlace(place, () => channel.edit({ place, messageId, text: rendered }, signal))
}

async function answer(press: ButtonPress, context: SessionContext): Promise<void> {
  const { chatLog, pending, stored } = context
  const [id = '', name = ''] = press.buttonId.split('.')
  const choice = CHOICES.find((known) => known === name)
  const prompt = await chatLog.prompt(id)
  if (prompt === undefined || choice === undefined) return await press.answer('This request is over.')
  if ((await judgePerson(context, press.author)) !== 'owner')
    return await press.answer('Only an owner of this bot may answer that.')
  const answerer = { name: press.author.name, principal: `${stored.name}:${press.author.id}`, door: stored.kind }
  try {
    if (choice === 'always') await pending.allowAlways(prompt.askId, answerer)
    else await pending.answer(prompt.askId, choice === 'deny' ? 'denied' : 'allowed', answerer)
    await close(prompt, `${DONE[choice]} by ${press.author.name}.`, context)
    await press.answer(DONE[choice])
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code === 'internal' || error.retryable) throw error
    await close(prompt, `This is over: ${error.message}.`, context)
    await press.answer(`Too late: ${error.message}.`)
  }
}

const DONE: Readonly<Record<Choice, string>> = { once: 'Allowed once', always: 'Always allowed', deny: 'Denied' }
