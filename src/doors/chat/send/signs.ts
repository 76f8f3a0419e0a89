/**
 * Reactions and typing: they have a small share of what a service accepts, so that answers have the rest. Invariant: the
 * caller never waits for a sign unless it asks to, and a place never waits for the signs of another one.
 */
import type { Clock } from '../../../clock.ts'
import { sleep } from '../../../wait.ts'
import type { Channel, MessageKey, ReactionState } from '../channel.ts'
import type { Signs } from '../chat-context.ts'

/** Services take 30 calls a second (Telegram) or 50 (Discord) of a bot. */
const SIGNS_PER_SECOND = 10
const PROGRESS_PER_SECOND = 5
/** Messages of a place whose state waits; a flood shows no more. */
const WAITING_MAX = 50
/** Messages whose answer did not arrive, and deleted ones; beyond it the oldest is forgotten. */
const REMEMBERED_MAX = 1000
/** Places with a limit; beyond it the oldest is forgotten. */
const HELD_PLACES_MAX = 1000

export interface SignsOptions {
  readonly channel: Pick<Channel, 'react' | 'typing'>
  readonly clock: Clock
  readonly signal: AbortSignal
}

export function createSigns({ channel, clock, signal }: SignsOptions): Signs {
  const places = new Map<string, Map<string, ShownSign>>()
  const undelivered = new Set<string>()
  const deleted = new Set<string>()
  const typing = new Set<string>()
  const signs = createAllowance(clock, SIGNS_PER_SECOND)
  const progress = createAllowance(clock, PROGRESS_PER_SECOND)
  const heldUntilMs = new Map<string, number>()
  const keyOf = ({ place, messageId }: MessageKey) => `${place} ${messageId}`
  const showAll = async (place: string, waiting: Map<string, ShownSign>) => {
    for (;;) {
      while (!signal.aborted && !signs.take()) await sleep(clock, 1000 / SIGNS_PER_SECOND, signal)
      const [first] = waiting
      if (first === undefined) break
      const [messageId, sign] = first
      waiting.delete(messageId)
      if (!signal.aborted) await channel.react({ place, messageId }, sign.state).catch(() => undefined)
      sign.shown.resolve()
    }
    places.delete(place)
  }
  const react = ({ place, messageId }: MessageKey, given: ReactionState): Promise<void> => {
    const state = given === 'done' && undelivered.has(keyOf({ place, messageId })) ? 'failed' : given
    if (deleted.has(keyOf({ place, messageId }))) return Promise.resolve()
    const known = places.get(place)
    const waiting = known ?? new Map<string, ShownSign>()
    if (waiting.size >= WAITING_MAX && !waiting.has(messageId)) return Promise.resolve()
    const sign = waiting.get(messageId) ?? { state, shown: Promise.withResolvers<void>() }
    sign.state = state
    waiting.set(messageId, sign)
    if (known === undefined) {
      places.set(place, waiting)
      void showAll(place, waiting)
    }
    return sign.shown.promise
  }
  return {
    react,
    undelivered(message) {
      remember(undelivered, keyOf(message))
      void react(message, 'failed')
    },
    forget: (message) => remember(deleted, keyOf(message)),
    typing(place) {
      if (typing.has(place) || !signs.take()) return
      typing.add(place)
      void channel
        .typing(place)
        .catch(() => undefined)
        .finally(() => typing.delete(place))
    },
    mayShowProgress: (place) => (heldUntilMs.get(place) ?? 0) <= clock.monotonicMs() && progress.take(),
    hold(place, forMs) {
      heldUntilMs.delete(place)
      heldUntilMs.set(place, clock.monotonicMs() + forMs)
      if (heldUntilMs.size > HELD_PLACES_MAX) heldUntilMs.delete(heldUntilMs.keys().next().value ?? '')
    },
  }
}

function remember(keys: Set<string>, key: string): void {
  keys.add(key)
  if (keys.size > REMEMBERED_MAX) keys.delete(keys.values().next().value ?? '')
}

interface ShownSign {
  state: ReactionState
  readonly shown: PromiseWithResolvers<void>
}

/** So many calls a second, and as many at once. */
function createAllowance(clock: Pick<Clock, 'monotonicMs'>, perSecond: number): { take(): boolean } {
  let left = perSecond
  let atMs = clock.monotonicMs()
  return {
    take() {
      const nowMs = clock.monotonicMs()
      left = Math.min(perSecond, left + ((nowMs - atMs) * perSecond) / 1000)
      atMs = nowMs
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
