/**
 * Desks: where workers of this process wait for handouts. A desk is memory only: what is handed out is leased in the
 * store already, and what is still on a desk when its worker leaves is given back.
 */
import type { Handout, Worker } from './inbox.ts'

export interface Desk {
  readonly worker: Worker
  put(handout: Handout): void
  /** The next handout, or undefined once the signal has aborted. */
  take(signal: AbortSignal): Promise<Handout | undefined>
  /** Takes what was never picked up; the desk is then closed. */
  clear(): Handout[]
}

export interface Desks {
  open(worker: Worker): Desk
  close(desk: Desk): void
  get(workerId: string): Desk | undefined
  /** A worker that would take a message of a hosted workspace, and one that serves this workspace by name. */
  ready(workspaceId: string): { hosted?: string; named?: string }
  all(): Iterable<Desk>
}

export function createDesks(): Desks {
  const desks = new Map<string, Desk>()
  return {
    open(worker) {
      if (desks.has(worker.id)) throw new Error(`worker ${worker.id} has a desk already`)
      const desk = createDesk(worker)
      desks.set(worker.id, desk)
      return desk
    },
    close: (desk) => void desks.delete(desk.worker.id),
    get: (workerId) => desks.get(workerId),
    ready(workspaceId) {
      const ready: { hosted?: string; named?: string } = {}
      for (const { worker } of desks.values()) {
        if (worker.workspaces === 'hosted') ready.hosted = worker.id
        else if (worker.workspaces.includes(workspaceId)) ready.named = worker.id
      }
      return ready
    },
    all: () => desks.values(),
  }
}

function createDesk(worker: Worker): Desk {
  const handouts: Handout[] = []
  let wake: (() => void) | undefined
  return {
    worker,
    put(handout) {
      handouts.push(handout)
      wake?.()
    },
    async take(signal) {
      while (handouts.length === 0 && !signal.aborted) {
        const woken = Promise.withResolvers<void>()
        wake = woken.resolve
        signal.addEventListener('abort', wake, { once: true })
        await woken.promise
        // A signal that outlives a million messages must not keep a listener of each.
        signal.removeEventListener('abort', wake)
      }
      return signal.aborted ? undefined : handouts.shift()
    },
    clear: () => handouts.splice(0),
  }
}
