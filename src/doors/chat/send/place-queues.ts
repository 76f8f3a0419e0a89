/**
 * The sends of a place, one at a time: answers before prompts, and prompts before progress. Invariant: a queue has only
 * calls to the service. A wait for a limit or for the next try happens outside of it, so an answer never stands behind it.
 */
import type { InPlace, SendRank } from '../chat-context.ts'

type Works = Readonly<Record<SendRank, (() => Promise<void>)[]>>

export function createPlaceQueues(): InPlace {
  const queues = new Map<string, Works>()
  const run = async (place: string, works: Works) => {
    for (let work = next(works); work !== undefined; work = next(works)) await work()
    queues.delete(place)
  }
  return (place, rank, work) =>
    new Promise((resolve, reject) => {
      const known = queues.get(place)
      const works = known ?? { answer: [], prompt: [], progress: [] }
      works[rank].push(() => Promise.resolve().then(work).then(resolve, reject))
      if (known !== undefined) return
      queues.set(place, works)
      void run(place, works)
    })
}

const next = ({ answer, prompt, progress }: Works) => answer.shift() ?? prompt.shift() ?? progress.shift()
