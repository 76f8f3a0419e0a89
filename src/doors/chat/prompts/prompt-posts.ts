/** Sends prompts and closes them. Invariant: a prompt is posted once, also when two tasks or two starts need it. */
import { randomBytes } from 'node:crypto'
import type { ChatButton } from '../channel.ts'
import { firstText, type SessionContext } from '../chat-context.ts'
import type { Prompt } from '../store/chat-log.ts'

export interface PromptPosts {
  post(prompt: Omit<Prompt, 'id' | 'messageId' | 'channel'>, options: PromptPostOptions): Promise<void>
  /** Removes the buttons, and adds how it ended. */
  close(prompt: Prompt, sentence: string): Promise<void>
}

export interface PromptPostOptions {
  /** The ids of the buttons begin with the id of the prompt. */
  readonly buttonsOf: (promptId: string) => readonly ChatButton[]
  readonly replyTo?: string
}

export function createPromptPosts(context: SessionContext): PromptPosts {
  const { chatLog, channel, inPlace, say, signal, stored } = context
  const posting = new Set<string>()
  return {
    async post(draft, { buttonsOf, replyTo }) {
      const prompt = await chatLog.addPrompt({ ...draft, id: randomBytes(8).toString('hex'), channel: stored.name })
      if (prompt.messageId !== undefined || posting.has(prompt.id)) return
      posting.add(prompt.id)
      try {
        const { id, place, text } = prompt
        const buttons = buttonsOf(id)
        const reply = replyTo === undefined ? {} : { replyTo }
        const sent = await say({ place, markdown: text, buttons, nonce: id, ...reply })
        if (sent !== undefined) await chatLog.setPromptMessage(id, sent)
      } finally {
        posting.delete(prompt.id)
      }
    },
    async close({ id, place, messageId, text }, sentence) {
      // An answer and the end of the wait close a prompt at the same time: the first one says how it ended.
      if (!(await chatLog.removePrompt(id)) || messageId === undefined) return
      const rendered = firstText(channel, `${text}\n\n${sentence}`) ?? sentence
      // Not awaited: the prompt of a budget may be in another chat than the task that waits for it.
      void inPlace(place, 'prompt', () => channel.edit({ place, messageId, text: rendered }, signal)).catch(
        () => undefined,
      )
    },
  }
}
