/** Events that others refer to: what is replied to, the prompt of a reaction, the original of an edit. Asked for where unknown. */
import type { Clock } from '../../clock.ts'
import { sleep } from '../../wait.ts'
import { type MatrixApi, MatrixRefusal, path } from './matrix-api.ts'
import { type Choice, choicesIn } from './matrix-content.ts'
import { eventOf, type MatrixEvent } from './matrix-json.ts'
import { quotedText, threadOf } from './matrix-messages.ts'

/** Beyond it the oldest is forgotten, and asked for again. */
const KNOWN_MAX = 5000
const FIND_MS = 10_000
const RETRY_MS = [1000, 5000] as const

export interface KnownEvent {
  readonly sender: string
  readonly text: string
  readonly rootId: string | undefined
  readonly choices: readonly Choice[]
}

export interface KnownEvents {
  add(roomId: string, event: MatrixEvent): void
  peek(roomId: string, eventId: string): KnownEvent | undefined
  /** Undefined for an event that the bot may not see, or that cannot be asked for now. */
  find(roomId: string, eventId: string): Promise<KnownEvent | undefined>
}

export function createKnownEvents(api: MatrixApi, clock: Clock, signal: AbortSignal): KnownEvents {
  const events = new Map<string, KnownEvent>()
  const keyOf = (roomId: string, eventId: string) => `${roomId} ${eventId}`
  const add = (roomId: string, event: MatrixEvent): KnownEvent => {
    const { sender, content } = event
    const known = { sender, text: quotedText(content), rootId: threadOf(event), choices: choicesIn(content) }
    events.set(keyOf(roomId, event.id), known)
    if (events.size > KNOWN_MAX) events.delete(events.keys().next().value ?? '')
    return known
  }
  const peek = (roomId: string, eventId: string) => events.get(keyOf(roomId, eventId))
  const ask = async (roomId: string, eventId: string) => {
    const route = path`/client/v3/rooms/${roomId}/event/${eventId}`
    const event = eventOf(await api.call({ method: 'GET', path: route, timeoutMs: FIND_MS }, signal))
    return event?.id === eventId ? add(roomId, event) : undefined
  }
  return {
    add,
    peek,
    async find(roomId, eventId) {
      const known = peek(roomId, eventId)
      if (known !== undefined) return known
      for (const delayMs of [...RETRY_MS, undefined]) {
        try {
          return await ask(roomId, eventId)
        } catch (error) {
          const isFinal = error instanceof MatrixRefusal && error.status < 500 && error.status !== 429
          if (isFinal || delayMs === undefined || signal.aborted) return undefined
          await sleep(clock, delayMs, signal)
        }
      }
      return undefined
    },
  }
}
