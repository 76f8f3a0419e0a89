/** The calls about events that several parts of the channel make, and the pace of those that can wait. */

import type { Clock } from '../../clock.ts'
import { ulid } from '../../ids.ts'
import { sleep } from '../../wait.ts'
import { type MatrixApi, MatrixRefusal, path } from './matrix-api.ts'
import { textOf } from './matrix-json.ts'

export interface NewEvent {
  readonly roomId: string
  readonly type: 'm.room.message' | 'm.reaction'
  /** The homeserver takes one event with it; default: a new one. */
  readonly transaction?: string
  readonly content: object
}

/** The homeserver answered, but not with the id of an event: a proxy may have cut the answer. */
class NoEventId extends Error {}

/** The id of the event. */
export async function sendEvent(api: MatrixApi, event: NewEvent, signal: AbortSignal): Promise<string> {
  const { roomId, type, transaction = ulid(), content } = event
  const route = path`/client/v3/rooms/${roomId}/send/${type}/${transaction}`
  const id = textOf((await api.call({ method: 'PUT', path: route, body: content }, signal))['event_id'])
  if (id === undefined) throw new NoEventId('the answer has no id')
  return id
}

export interface EventKey {
  readonly roomId: string
  readonly eventId: string
}

export async function redact(api: MatrixApi, { roomId, eventId }: EventKey, signal: AbortSignal): Promise<void> {
  const route = path`/client/v3/rooms/${roomId}/redact/${eventId}/${ulid()}`
  await api.call({ method: 'PUT', path: route, body: {} }, signal)
}

const TRIES_MAX = 5
const LIMIT_MS_MAX = 60_000
/** An answer that waits for the same limit goes first. */
const AFTER_ANSWERS_MS = 500
/** The limits of a homeserver are for all events of a bot: after a refusal the signs leave room for answers this long. */
const TIGHT_MS = 30_000

/** Calls for reactions: they wait for limits by themselves, and few of them are made while answers wait. */
export interface Pace {
  /** The homeserver has lately refused a call because of its limits. */
  isTight(): boolean
  limited(): void
  /** Makes the call again after each limit; undefined when it is given up. */
  patiently<T>(call: () => Promise<T>): Promise<T | undefined>
}

export function createPace(clock: Clock, signal: AbortSignal): Pace {
  let tightUntilMs = Number.NEGATIVE_INFINITY
  const pace: Pace = {
    isTight: () => clock.monotonicMs() < tightUntilMs,
    limited() {
      tightUntilMs = clock.monotonicMs() + TIGHT_MS
    },
    async patiently(call) {
      for (let tries = 0; tries < TRIES_MAX && !signal.aborted; tries++) {
        try {
          return await call()
        } catch (error) {
          if (!(error instanceof MatrixRefusal) || error.status !== 429) return undefined
          pace.limited()
          const waitMs = (error.retryAfterMs ?? LIMIT_MS_MAX) + AFTER_ANSWERS_MS
          await sleep(clock, Math.min(waitMs, LIMIT_MS_MAX), signal)
        }
      }
      return undefined
    },
  }
  return pace
}
