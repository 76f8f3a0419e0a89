/**
 * Sends the events of a running turn to the inbox. It merges text deltas for 50 ms, so that a fast agent costs a few
 * commits a second and not one a word. Events that are unsent when the turn ends go with its settle, without text
 * deltas, because the reply contains them.
 */

import type { Clock } from '../clock.ts'
import type { Inbox, LeaseKey, LeaseStanding, NumberedEvents, TurnEvent } from '../inbox/worker.ts'
import { boundDiffs } from '../protocol/file-diff.ts'
import { createTokenMask } from '../token-mask.ts'
import { shorten } from '../truncate.ts'

const MERGE_MS = 50
const MERGE_CHARACTERS_MAX = 8192
/** Of a tool's subject, which may be a whole file. The rest is cut. */
const SUBJECT_CHARACTERS_MAX = 500

export interface TurnLog {
  add(event: TurnEvent): void
  /** Stores a note for the next attempt. Resolves when it is durable, with the standing of the lease. */
  note(note: { readonly key: string; readonly value: string }): Promise<LeaseStanding>
  /** Waits for the append in flight and returns the events that the inbox does not have. */
  unsent(): Promise<NumberedEvents>
}

export interface TurnLogOptions {
  readonly inbox: Inbox
  readonly key: LeaseKey
  readonly clock: Clock
  /** Called with the standing of the lease after each append. */
  readonly onStanding: (standing: LeaseStanding) => void
  /** Called when an append fails. Its events are kept and go with the next append. */
  readonly onError: (error: unknown) => void
}

export function createTurnLog({ inbox, key, clock, onStanding, onError }: TurnLogOptions): TurnLog {
  const maskPiece = createTokenMask()
  let pending: TurnEvent[] = []
  let characters = 0
  let from = 1
  let inFlight: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  let ended = false
  const cancelFlush = () => {
    cancelTimer?.()
    cancelTimer = undefined
  }
  const flush = () => {
    cancelFlush()
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
        if (pending.length > 0) scheduleFlush()
      })
  }
  const scheduleFlush = () => {
    if (ended) return
    if (characters >= MERGE_CHARACTERS_MAX) flush()
    else cancelTimer ??= clock.after(MERGE_MS, flush)
  }
  return {
    add(event) {
      if (event.type !== 'text') {
        pending.push(event.type === 'tool' ? shortenTool(event) : event)
        return scheduleFlush()
      }
      // The inbox masks tokens too, but it sees the pieces of a text one by one.
      const delta = maskPiece(event.delta)
      if (delta === '') return
      const last = pending.at(-1)
      characters += delta.length
      if (last?.type === 'text') pending[pending.length - 1] = { type: 'text', delta: last.delta + delta }
      else pending.push({ type: 'text', delta })
      scheduleFlush()
    },
    note: ({ key: name, value }) => inbox.append(key, { from, events: [], notes: { [name]: value } }),
    async unsent() {
      ended = true
      cancelFlush()
      await inFlight
      return { from, events: pending.filter((event) => event.type !== 'text') }
    },
  }
}

function shortenTool(event: TurnEvent & { type: 'tool' }): TurnEvent {
  const { subject, diffs } = event
  const bounded = diffs === undefined ? event : { ...event, diffs: boundDiffs(diffs) }
  return subject === undefined ? bounded : { ...bounded, subject: shorten(subject, SUBJECT_CHARACTERS_MAX) }
}
