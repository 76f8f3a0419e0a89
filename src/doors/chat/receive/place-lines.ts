/**
 * The line of each place: its stored messages are handled one after the other. Whatever one of them waits for (a download,
 * the store, a limit of the service) holds up its own place only. Invariant: a message leaves its line when it was handled;
 * when the session ends before, the next one handles it.
 */
import { toMoleculeError } from '../../../errors.ts'
import { createKeyedQueue, sleep } from '../../../wait.ts'
import type { IncomingMessage } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { ArrivalKey } from '../store/arrivals.ts'
import type { HeldChatMessage } from '../store/pairings.ts'
import { readWaiting } from './waiting-message.ts'

const TRIES_MAX = 3
const RETRY_MS = 2000
const LEFT_OUT_TEXT = 'I could not take this message: it failed each time. The log of the platform says why.'

export interface PlaceLines {
  add(arrival: ArrivalKey): void
  /** Held messages of people who were let in. */
  release(held: HeldChatMessage): void
}

export interface PlaceLinesOptions {
  readonly context: SessionContext
  readonly handle: (message: IncomingMessage) => Promise<void>
  readonly finish: (message: IncomingMessage) => Promise<void>
  readonly admitHeld: (message: IncomingMessage) => Promise<void>
}

export function createPlaceLines(options: PlaceLinesOptions): PlaceLines {
  const { pairings, stored, log } = options.context
  const inLine = createKeyedQueue()
  const releasing = new Set<string>()
  const warn = (error: unknown, text: string) => log.warn({ err: toMoleculeError(error), channel: stored.name }, text)
  return {
    add(arrival) {
      inLine(arrival.place, () => keepHandling(arrival, options)).catch((error) =>
        warn(error, 'a message of a chat waits for the next start of its channel'),
      )
    },
    release(held) {
      const key = `${held.place} ${held.id}`
      if (releasing.has(key)) return
      releasing.add(key)
      const release = async () => {
        try {
          await options.admitHeld(JSON.parse(held.message) as IncomingMessage)
        } catch (error) {
          warn(error, 'a held message could not be admitted')
          if (toMoleculeError(error).retryable) return
        }
        await pairings.dropHeld(stored.name, held)
      }
      inLine(held.place, release)
        .catch((error) => warn(error, 'a held message could not be handled'))
        .finally(() => releasing.delete(key))
    },
  }
}

/** A failure that passes by itself, such as an outage of the store, is no try. */
async function keepHandling(arrival: ArrivalKey, { context, handle, finish }: PlaceLinesOptions): Promise<void> {
  const { clock, log, signal, signs, say, stored } = context
  for (let tries = 0; !signal.aborted; ) {
    try {
      const message = await readWaiting(arrival, context)
      if (message === undefined) return
      if (message.isWithdrawn) return await finish(message)
      if (tries < TRIES_MAX) return await handle(message)
      const { place, id, messageId = id } = message
      void signs.react({ place: place.id, messageId }, 'failed')
      void say({ place: place.id, markdown: LEFT_OUT_TEXT, replyTo: messageId })
      return await finish(message)
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      if (!error.retryable) tries += 1
      log.warn({ err: error, channel: stored.name, tries }, 'a message of a chat could not be handled')
      await sleep(clock, RETRY_MS, signal)
    }
  }
}
