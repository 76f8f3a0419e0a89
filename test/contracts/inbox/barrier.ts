/** A store whose calls a test stops at one place, so that another call commits in between: it shows a race without luck. */
import type { Store } from '../../../src/store/store.ts'
import { within } from '../../harness/wait.ts'

/** Before the next write begins, or when the next read has its rows and its caller does not. */
type Place = 'write' | 'read'

export interface Barrier {
  readonly store: Store
  /** `reached` resolves when the call stands there; it goes on after `release`. */
  hold(place: Place): { readonly reached: Promise<void>; release(): void }
}

export function createBarrier(store: Store): Barrier {
  let held: { readonly place: Place; readonly reach: () => void; readonly released: Promise<void> } | undefined
  const stopAt = async (place: Place) => {
    if (held?.place !== place) return
    const { reach, released } = held
    held = undefined
    reach()
    await released
  }
  return {
    store: {
      ...store,
      async read(transaction) {
        const rows = await store.read(transaction)
        await stopAt('read')
        return rows
      },
      async write(transaction, lane) {
        await stopAt('write')
        return await store.write(transaction, lane)
      },
    },
    hold(place) {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      held = { place, reach: reached.resolve, released: released.promise }
      return { reached: within(reached.promise, `a ${place} of the held store`), release: released.resolve }
    },
  }
}
