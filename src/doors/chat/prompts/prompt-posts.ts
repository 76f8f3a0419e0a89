/**
 * Prompts are deliveries: stored, sent until they arrive, and shown when it is unknown whether they did. Invariant: a prompt
 * is posted once, also when two tasks or two starts need it; one that is over is not posted any more.
 */
import { ulid } from '../../../ids.ts'
import type { Delivery } from '../../../inbox/delivery.ts'
import type { ChatButton } from '../channel.ts'
import { firstText, promptDoor, type SessionContext } from '../chat-context.ts'
import type { HandledMessage } from '../store/chat-log.ts'
import type { Prompt } from '../store/prompt-log.ts'

export interface PromptPosts {
  post(prompt: Omit<Prompt, 'id' | 'messageId' | 'channel'>, options: PromptPostOptions): Promise<void>
  /** A question has no buttons: the next message is its answer. */
  question(message: HandledMessage, text: string): Promise<void>
  /** Removes the buttons, and adds how it ended. */
  close(prompt: Prompt, sentence: string): Promise<void>
}

export interface PromptPostOptions {
  /** The ids of the buttons begin with the id of the prompt. */
  readonly buttonsOf: (promptId: string) => readonly ChatButton[]
  readonly replyTo?: string
  /** What is asked about, where it does not fit into the text exactly. */
  readonly file?: PromptFile
}

/** In a place that takes no files a long request is not shown: a person can only deny it there. */
export const NOT_SHOWN = '\n\n(What it is exactly is not shown here; see `molecule pending`.)'

interface PromptFile {
  readonly name: string
  readonly text: string
}

/** The prompt in the body of its delivery. */
export interface StoredPrompt {
  readonly buttons: readonly ChatButton[]
  readonly replyTo?: string
  readonly file?: PromptFile
  readonly isQuestion?: boolean
}

/** Prevents buttons that nothing removes: a prompt may be answered elsewhere while its message is on the way. */
export async function promptArrived(
  { id, channel: place, body: { parts = [], prompt } }: Delivery,
  messageId: string,
  { channel, closedPrompts, inPlace, promptLog, signal }: SessionContext,
): Promise<void> {
  const { isQuestion } = prompt as StoredPrompt
  // A person may press a button before the service has answered the send.
  if (closedPrompts.delete(id)) return
  if ((await promptLog.setMessage(id, messageId)) || isQuestion) return
  const text = firstText(channel, `${parts[0]?.text ?? ''}\n\n${OVER_MEANWHILE}`) ?? OVER_MEANWHILE
  void inPlace(place, 'prompt', () => channel.edit({ place, messageId, text }, signal)).catch(() => undefined)
}

/** Most of them were answered long after their send. */
const CLOSED_MAX = 1000
const OVER_MEANWHILE = 'This is over: it was answered elsewhere.'

export function createPromptPosts(context: SessionContext): PromptPosts {
  const { promptLog, channel, closedPrompts, deliveries, inPlace, signal, stored } = context
  return {
    async post(draft, { buttonsOf, replyTo, file }) {
      const prompt = await promptLog.add({ ...draft, id: ulid(), channel: stored.name })
      if (prompt.messageId !== undefined) return
      const { id, place, taskId, text } = prompt
      const body: StoredPrompt = { buttons: buttonsOf(id), replyTo, file }
      await deliveries.add({
        id,
        door: promptDoor(stored.name),
        channel: place,
        ...(taskId === '' ? { workspaceId: stored.workspaceId ?? '', purpose: 'notice' } : { taskId }),
        body: { state: 'TASK_STATE_AUTH_REQUIRED', parts: [{ text }], prompt: body },
      })
    },
    async question({ place, taskId = '', messageId: replyTo }, text) {
      const prompt: StoredPrompt = { buttons: [], replyTo, isQuestion: true }
      const body = { state: 'TASK_STATE_INPUT_REQUIRED', parts: [{ text }], prompt } as const
      await deliveries.add({ id: ulid(), door: promptDoor(stored.name), channel: place, taskId, body })
    },
    async close({ id, place, messageId, text }, sentence) {
      // An answer and the end of the wait close a prompt at the same time: the first one says how it ended.
      if (!(await promptLog.remove(id))) return
      await deliveries.withdraw(id)
      if (messageId === undefined) return
      if (closedPrompts.size >= CLOSED_MAX) closedPrompts.clear()
      closedPrompts.add(id)
      const rendered = firstText(channel, `${text}\n\n${sentence}`) ?? sentence
      // Not awaited: the prompt of a budget may be in another chat than the task that waits for it.
      void inPlace(place, 'prompt', () => channel.edit({ place, messageId, text: rendered }, signal)).catch(
        () => undefined,
      )
    },
  }
}
