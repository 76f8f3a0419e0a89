/** Notices when an owner can be asked who could not be asked before: a person was made one, or wrote to the bot. */
import type { Author, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

/** Places in which an owner was seen; beyond it they count as new again. */
const SEEN_MAX = 1000

export interface OwnerWatch {
  /** True when the owner was not seen in the place before, since the start of the session. */
  seen(place: Place, owner: Author): Promise<boolean>
  /** Runs the work when the owners or their places have changed since it ran the last time without an error. */
  whenChanged(work: () => Promise<void>): Promise<void>
}

export function createOwnerWatch({ chatLog, pairings, stored }: SessionContext): OwnerWatch {
  const seen = new Set<string>()
  let count = 0
  let current: string | undefined
  return {
    async seen(place, { id: person }) {
      const key = `${place.id} ${person}`
      if (seen.has(key)) return false
      if (seen.size >= SEEN_MAX) seen.clear()
      // A command of a menu is no message, so the direct chat may not be known yet.
      if (place.isDirect) await chatLog.place({ channel: stored.name, place: place.id, person }, JSON.stringify(place))
      seen.add(key)
      count += 1
      return true
    },
    async whenChanged(work) {
      const now = JSON.stringify([count, await pairings.owners(stored.name)])
      if (now === current) return
      await work()
      current = now
    },
  }
}
