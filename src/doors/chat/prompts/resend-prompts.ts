/**
 * Answers that may not have arrived: an owner decides in the chat whether they are sent again. Invariant: a prompt is bound
 * to one delivery, an answer counts once, and the prompt is over when a person has decided elsewhere.
 */
import { textOf } from '../../../protocol/part.ts'
import { shorten } from '../../../truncate.ts'
import type { ChatButton } from '../channel.ts'
import { deliveryDoor, type SessionContext } from '../chat-context.ts'
import type { Prompt } from '../store/prompt-log.ts'
import { nameAsker, placesToAsk, quoted } from './ask-places.ts'
import type { PromptPosts } from './prompt-posts.ts'

export const RESEND_CHOICES = ['resend', 'arrived'] as const

export interface ResendPrompts {
  /** Asks about each answer that may not have arrived, once in each place, and closes the prompts of those decided. */
  update(known: readonly Prompt[], isAnswering: (prompt: Prompt) => boolean): Promise<void>
}

/** Of the answer in question. */
const BEGINNING_CHARACTERS_MAX = 80

type UnknownDelivery = Awaited<ReturnType<SessionContext['deliveries']['unknown']>>[number]

export function createResendPrompts(context: SessionContext, posts: PromptPosts): ResendPrompts {
  const { chatLog, deliveries, pairings, stored } = context
  const askAbout = async ({ id, taskId = '', channel: place, body }: UnknownDelivery, known: readonly Prompt[]) => {
    const askId = `resend ${id}`
    const asked = (await chatLog.ofTask(taskId)).findLast((message) => message.place === place)
    if (asked === undefined) return
    // An owner who takes part reads the question where the answer should be.
    const isHere = await pairings.hasOwner(stored.name, place)
    for (const there of isHere ? [place] : await placesToAsk(asked, context)) {
      // A look must not write again what is stored.
      if (known.some((prompt) => prompt.askId === askId && prompt.place === there)) continue
      const beginning = quoted(shorten(textOf(body.parts).trim(), BEGINNING_CHARACTERS_MAX))
      const whom = there === place ? '' : ` to ${await nameAsker(asked, context)}`
      const text = `I do not know whether my answer${whom} arrived: ${beginning}. Sent again, it may be there twice.`
      const reply = there === place ? { replyTo: asked.messageId } : {}
      const resend = { deliveryId: id }
      await posts.post({ place: there, taskId, askId, text, resend }, { buttonsOf: resendButtons, ...reply })
    }
  }
  return {
    async update(known, isAnswering) {
      const open = await deliveries.unknown(deliveryDoor(stored.name))
      for (const prompt of known) {
        const { resend } = prompt
        if (resend === undefined || isAnswering(prompt) || open.some(({ id }) => id === resend.deliveryId)) continue
        await posts.close(prompt, 'This is over: it was decided elsewhere.')
      }
      for (const delivery of open) await askAbout(delivery, known)
    },
  }
}

const resendButtons = (id: string): ChatButton[] => [
  { id: `${id}.resend`, label: 'Resend', style: 'plain' },
  { id: `${id}.arrived`, label: 'It arrived', style: 'good' },
]
