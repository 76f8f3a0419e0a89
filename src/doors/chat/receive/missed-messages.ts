/** Names the messages that were too old to be answered when the bot came back: one line for each place. */
import { shorten } from '../../../truncate.ts'
import type { IncomingMessage } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

/** Messages that arrive together are named together: the line is sent when this time passed without a further one. */
const QUIET_MS = 1000
const NAMED_MAX = 5
const TEXT_CHARACTERS_MAX = 40

export interface MissedMessages {
  add(message: IncomingMessage): void
}

export function createMissedMessages({ clock, say }: SessionContext): MissedMessages {
  const places = new Map<string, { messages: IncomingMessage[]; cancel: () => void }>()
  const flush = (place: string) => {
    const messages = places.get(place)?.messages ?? []
    places.delete(place)
    void say({ place, markdown: missedLine(messages) })
  }
  return {
    add(message) {
      const place = message.place.id
      const known = places.get(place)
      known?.cancel()
      const messages = [...(known?.messages ?? []), message]
      places.set(place, { messages, cancel: clock.after(QUIET_MS, () => flush(place)) })
    },
  }
}

function missedLine(messages: readonly IncomingMessage[]): string {
  const named = messages.slice(0, NAMED_MAX).map(({ author, text }) => `${author.name}: ${quoted(text)}`)
  const more = messages.length > NAMED_MAX ? ` and ${messages.length - NAMED_MAX} more` : ''
  const what = messages.length === 1 ? 'This message is' : 'These messages are'
  const again = messages.length === 1 ? 'it' : 'what still matters'
  return `${what} older than an hour, so I did not answer: ${named.join(', ')}${more}. Send ${again} again.`
}

const quoted = (text: string): string => `"${shorten(text.replace(/\s+/g, ' ').trim(), TEXT_CHARACTERS_MAX)}"`
