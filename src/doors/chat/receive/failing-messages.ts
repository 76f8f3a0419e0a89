/**
 * Prevents that one message holds up a channel for ever: a service gives a message that was not confirmed again, before
 * all later ones. A failure that passes by itself, such as an outage of the store, does not count.
 */
import { toMoleculeError } from '../../../errors.ts'
import type { IncomingMessage } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

const TRIES_MAX = 3
/** Messages whose failures are counted; the oldest count is forgotten. */
const COUNTED_MAX = 1000
const LEFT_OUT_TEXT = 'I could not take this message: it failed each time. The log of the platform says why.'

export interface FailingMessages {
  /** False when the last try failed: the chat says so, and the message is left out. Earlier failures are thrown. */
  run(message: IncomingMessage, handle: () => Promise<void>): Promise<boolean>
}

export function createFailingMessages({ channel, stored, say, log }: SessionContext): FailingMessages {
  const failures = new Map<string, number>()
  return {
    async run({ id, messageId = id, place }, handle) {
      const key = `${place.id} ${id}`
      try {
        await handle()
        failures.delete(key)
        return true
      } catch (thrown) {
        const error = toMoleculeError(thrown)
        const count = (failures.get(key) ?? 0) + 1
        if (error.retryable) throw error
        if (count < TRIES_MAX) {
          failures.set(key, count)
          const [oldest] = failures.keys()
          if (failures.size > COUNTED_MAX && oldest !== undefined) failures.delete(oldest)
          throw error
        }
        failures.delete(key)
        log.error({ err: error, channel: stored.name }, 'a message of a chat failed each time and is left out')
        await channel.react({ place: place.id, messageId }, 'failed')
        await say({ place: place.id, markdown: LEFT_OUT_TEXT, replyTo: messageId })
        return false
      }
    },
  }
}
