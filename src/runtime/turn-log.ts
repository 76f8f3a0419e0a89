/**
 * What a running turn tells, on its way to the inbox: text deltas are merged for a moment before they are appended,
 * so that a fast agent costs a few commits a second and not one a word. What is still here when the turn ends goes
 * with its settle; text deltas of that rest are dropped, because the reply holds them.
 */
import type { Clock } from '../clock.ts'
import type { Inbox, LeaseKey, LeaseStanding, NumberedEvents, TurnEvent } from '../inbox/inbox.ts'

const MERGE_MS = 50
const MERGE_CHARACTERS_MAX = 8192

export interface TurnLog {
  add(event: TurnEvent): void
  /** Kept for the next attempt: resolves when it is durable, with how the lease stands. */
  note(note: { readonly key: string; readonly value: string }): Promise<LeaseStanding>
  /** Waits for appends in flight and gives what the inbox has not got. */
  unsent(): Promise<NumberedEvents>
}

export interface TurnLogOptions {
  readonly inbox: Inbox
  readonly key: LeaseKey
  readonly clock: Clock
  /** Told how the lease stands after each append. */
  readonly onStanding: (standing: LeaseStanding) => void
  /** An append that failed is not lost: its events stay and go with the next one. */
  readonly onError: (error: unknown) => void
}

export function createTurnLog({ inbox, key, clock, onStanding, onError }: TurnLogOptions): TurnLog {
  let pending: TurnEvent[] = []
  let characters = 0
  let from = 1
  let inFlight: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  let ended = false
  const disarm = () => {
    cancelTimer?.()
    cancelTimer = undefined
  }
  const flush = () => {
    disarm()
    if (inFlight !== undefined || pending.length === 0) return
    const events = pending
    pending = []
    characters = 0
    inFlight = inbox
      .append(key, { from, events })
      .then((standing) => {
        from += events.length
        onStanding(standing)
      })
      .catch((error: unknown) => {
        pending = [...events, ...pending]
        onError(error)
      })
      .finally(() => {
        inFlight = undefined
        if (pending.length > 0) arm()
      })
  }
  const arm = () => {
    if (ended) return
    if (characters >= MERGE_CHARACTERS_MAX) flush()
    else cancelTimer ??= clock.after(MERGE_MS, flush)
  }
  return {
    add(event) {
      const last = pending.at(-1)
      if (event.type === 'text') characters += event.delta.length
      if (event.type === 'text' && last?.type === 'text') {
        pending[pending.length - 1] = { type: 'text', delta: last.delta + event.delta }
      } else {
        pending.push(event)
      }
      arm()
    },
    note: ({ key: name, value }) => inbox.append(key, { from, events: [], notes: { [name]: value } }),
    async unsent() {
      ended = true
      disarm()
      await inFlight
      return { from, events: pending.filter((event) => event.type !== 'text') }
    },
  }
}
