/**
 * Reactions of the bot: the state of a person's message, and the choices below a prompt. A homeserver counts each reaction and
 * each removal as an event, so while answers wait for its limits only how a message ended is shown.
 */
import type { ReactionState } from '../chat/channel.ts'
import { type MatrixApi, path } from './matrix-api.ts'
import { type Pace, redact, sendEvent } from './matrix-calls.ts'
import { type Choice, plainEmoji, reactionContent } from './matrix-content.ts'
import { eventsOf, type MatrixEvent, relationOf, textOf } from './matrix-json.ts'
import type { KnownEvents } from './matrix-known.ts'
import { targetOf } from './matrix-rooms.ts'

const STATES: Readonly<Record<ReactionState, string>> = {
  seen: '👀',
  running: '⏳',
  waiting: '❓',
  done: '✅',
  failed: '❌',
}
const STATE_KEYS: ReadonlySet<string> = new Set(Object.values(STATES))
const PASSING: ReadonlySet<ReactionState> = new Set(['seen', 'running'])
/** Messages whose reaction is remembered; of others the homeserver is asked. */
const SHOWN_MAX = 1000
const RELATIONS_MAX = '100'

export interface ReactionsOptions {
  readonly api: MatrixApi
  readonly known: KnownEvents
  readonly pace: Pace
  readonly me: () => string
  readonly signal: AbortSignal
}

export interface MatrixReactions {
  /** A message that has just been written has no reaction yet. */
  arrived(messageId: string): void
  show(place: string, messageId: string, state: ReactionState): Promise<void>
  offer(roomId: string, messageId: string, choices: readonly Choice[]): Promise<void>
  /** Removes the choices below an own message that had some. */
  withdraw(roomId: string, messageId: string): Promise<void>
}

export function createMatrixReactions({ api, known, pace, me, signal }: ReactionsOptions): MatrixReactions {
  const shown = new Map<string, ReadonlyMap<string, string>>()
  const closed = new Set<string>()
  const remember = (messageId: string, reactions: ReadonlyMap<string, string>) => {
    shown.delete(messageId)
    shown.set(messageId, reactions)
    if (shown.size > SHOWN_MAX) shown.delete(shown.keys().next().value ?? '')
  }
  /** The own reactions to a message: key and id of each. */
  const ownOn = async (roomId: string, messageId: string): Promise<[key: string, id: string][]> => {
    const route = path`/client/v1/rooms/${roomId}/relations/${messageId}/m.annotation/m.reaction`
    const answer = await api.call({ method: 'GET', path: route, query: { limit: RELATIONS_MAX } }, signal)
    return eventsOf(answer['chunk'])
      .filter(({ sender }) => sender === me())
      .map((event) => [keyOf(event), event.id])
  }
  const add = (roomId: string, messageId: string, key: string) =>
    pace.patiently(() =>
      sendEvent(api, { roomId, type: 'm.reaction', content: reactionContent(messageId, key) }, signal),
    )
  const remove = (roomId: string, id: string) => pace.patiently(() => redact(api, { roomId, eventId: id }, signal))
  return {
    arrived: (messageId) => {
      if (!shown.has(messageId)) remember(messageId, new Map())
    },
    async show(place, messageId, state) {
      if (pace.isTight() && PASSING.has(state)) return
      const { roomId } = targetOf(place)
      const before = shown.get(messageId) ?? new Map(await ownOn(roomId, messageId))
      const key = STATES[state]
      const id = before.get(key) ?? (await add(roomId, messageId, key))
      remember(messageId, new Map(id === undefined ? [] : [[key, id]]))
      for (const [old, oldId] of before) if (old !== key && STATE_KEYS.has(old)) await remove(roomId, oldId)
    },
    async offer(roomId, messageId, choices) {
      for (const { key } of choices) {
        if (closed.has(messageId)) return
        const id = await add(roomId, messageId, key)
        // It was answered while the reaction was on its way.
        if (closed.has(messageId) && id !== undefined) await remove(roomId, id)
      }
    },
    async withdraw(roomId, messageId) {
      const choices = (await known.find(roomId, messageId))?.choices ?? []
      if (choices.length === 0 || closed.has(messageId)) return
      closed.add(messageId)
      if (closed.size > SHOWN_MAX) closed.delete(closed.values().next().value ?? '')
      const keys = new Set(choices.map(({ key }) => plainEmoji(key)))
      for (const [key, id] of await ownOn(roomId, messageId)) if (keys.has(plainEmoji(key))) await remove(roomId, id)
    },
  }
}

const keyOf = (event: MatrixEvent): string => textOf(relationOf(event)['key']) ?? ''
