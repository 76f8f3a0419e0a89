/**
 * Joins the stored conversation with the history that the client sent with its messages (`params.metadata.history`). What
 * is stored is preferred; what the platform does not have still counts, also in later turns. Pure.
 */
import type { Message } from '../../protocol/a2a.ts'
import { textOf } from '../../protocol/part.ts'

/** A message as it is stored, with the history that the client sent with it. */
export interface ClaimingTurn {
  /** The message and its reply; empty for one that did not get an answer, and for the current message. */
  readonly exchange: readonly Message[]
  readonly claimed: readonly Message[]
}

/**
 * The oldest first. A claimed message that is stored, or that an earlier message claimed too, is not repeated. What a client
 * claims after a message that is known happened between that and the message it came with; everything else is older.
 */
export function joinHistory(turns: readonly ClaimingTurn[]): Message[] {
  const known = new Map<string, number>()
  for (const message of turns.flatMap(({ exchange }) => exchange)) count(known, message)
  const older: Message[] = []
  const joined: Message[] = []
  for (const { exchange, claimed } of turns) {
    const left = new Map(known)
    let hasKnown = false
    for (const message of claimed) {
      const key = keyOf(message)
      const times = left.get(key) ?? 0
      if (times > 0) {
        left.set(key, times - 1)
        hasKnown = true
        continue
      }
      count(known, message)
      if (hasKnown) joined.push(message)
      else older.push(message)
    }
    joined.push(...exchange)
  }
  return [...older, ...joined]
}

function count(known: Map<string, number>, message: Message): void {
  const key = keyOf(message)
  known.set(key, (known.get(key) ?? 0) + 1)
}

/** Text alone: the same file may be claimed in another form. */
const keyOf = ({ role, parts }: Message): string => `${role} ${textOf(parts).trim()}`
