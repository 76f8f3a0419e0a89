/**
 * People whom the bot does not know: the owners get buttons that let a person in or not. The person's own chat has only the
 * code. Invariant: a prompt is bound to one code, and it is over once that pairing was decided, wherever that was.
 */
import type { ChatButton } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { WaitingPairing } from '../store/pairings.ts'
import type { Prompt } from '../store/prompt-log.ts'
import { nameWhere, placesToAsk, quoted } from './ask-places.ts'
import type { PromptPosts } from './prompt-posts.ts'

export const PAIRING_CHOICES = ['allow', 'ignore'] as const

/** Strangers of a channel that owners are asked about at once; the next ones follow when these are decided. */
const ASKED_MAX = 20

export interface PairingPrompts {
  /** Asks the owners about the people who wait, once in each place, and closes the prompts of those who were decided. */
  update(known: readonly Prompt[], isAnswering: (prompt: Prompt) => boolean): Promise<void>
}

export function createPairingPrompts(context: SessionContext, posts: PromptPosts): PairingPrompts {
  const { pairings, stored } = context
  /** `<ask> <place>` of what this session has posted: a look must not write again what is stored. */
  const posted = new Set<string>()
  const askAbout = async (waiting: WaitingPairing) => {
    const { person, name, code } = waiting
    const askId = askIdOf(waiting)
    for (const place of await placesToAsk(waiting, context)) {
      if (posted.has(`${askId} ${place}`)) continue
      const where = await nameWhere(waiting.place, context)
      const text = `${quoted(name)} wants to talk to this bot: the person wrote ${where} and got the code **${code}**. Nothing runs before an owner decides.`
      await posts.post({ place, taskId: '', askId, text, pairing: { person, code } }, { buttonsOf: pairingButtons })
      posted.add(`${askId} ${place}`)
    }
  }
  return {
    async update(known, isAnswering) {
      const waiting = await pairings.waiting(stored.name)
      for (const prompt of known) {
        const { pairing } = prompt
        if (pairing === undefined || isAnswering(prompt) || waiting.some(({ code }) => code === pairing.code)) continue
        await posts.close(prompt, await howItEnded(pairing.person, context))
        posted.delete(`${prompt.askId} ${prompt.place}`)
      }
      for (const one of waiting.slice(0, ASKED_MAX)) await askAbout(one)
    },
  }
}

const askIdOf = ({ channel, code }: WaitingPairing): string => `pairing ${channel} ${code}`

const pairingButtons = (id: string): ChatButton[] => [
  { id: `${id}.allow`, label: 'Allow', style: 'good' },
  { id: `${id}.ignore`, label: 'Ignore', style: 'bad' },
]

async function howItEnded(person: string, { pairings, stored }: SessionContext): Promise<string> {
  const { state, decidedBy = 'an owner' } = (await pairings.find({ channel: stored.name, person })) ?? {}
  if (state === 'approved') return `Allowed by ${decidedBy}.`
  return state === 'denied' ? `Ignored by ${decidedBy}.` : 'This is over: the person asked too long ago.'
}
