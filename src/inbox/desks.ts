/**
 * Desks: where workers of this process wait for handouts. A desk is memory only: what is handed out is leased in the
 * store already, and what is still on a desk when its worker leaves is given back.
 */
import type { Handout, Worker } from './inbox.ts'

/** How many leases a worker elsewhere can hold at a time, and the names of those it holds. */
export interface Room {
  readonly leasesMax: number
  readonly holding: Set<string>
}

export interface Desk {
  readonly worker: Worker
  /** Absent where the workspace's slots are the only limit. */
  readonly room: Room | undefined
  /** How many more leases it has room for, once the one named here has ended. */
  free(endingLease?: string): number
  accepts(endingLease?: string): boolean
  put(handout: Handout): void
  /** The next handout, or undefined once the signal has aborted. */
  take(signal: AbortSignal): Promise<Handout | undefined>
  /** Takes what was never picked up; the desk is then closed. */
  clear(): Handout[]
}

export interface Desks {
  open(worker: Worker, room?: Room): Desk
  close(desk: Desk): void
  get(workerId: string): Desk | undefined
  /** A worker that would take a message of a hosted workspace, and one that serves this workspace by name. */
  ready(workspaceId: string): { hosted?: string; named?: string }
  all(): Iterable<Desk>
  /** The lease takes no room any more, whoever has it. */
  forget(lease: string): void
}

export function createDesks(): Desks {
  const desks = new Map<string, Desk>()
  const rooms = new Set<Room>()
  return {
    open(worker, room) {
      if (desks.has(worker.id)) throw new Error(`worker ${worker.id} has a desk already`)
      const desk = createDesk(worker, room)
      desks.set(worker.id, desk)
      if (room !== undefined) rooms.add(room)
      return desk
    },
    close(desk) {
      desks.delete(desk.worker.id)
      if (desk.room !== undefined) rooms.delete(desk.room)
    },
    get: (workerId) => desks.get(workerId),
    ready(workspaceId) {
      const ready: { hosted?: string; named?: string } = {}
      for (const desk of desks.values()) {
        const { worker } = desk
        if (worker.workspaces === 'hosted') ready.hosted = worker.id
        else if (worker.workspaces.includes(workspaceId) && desk.accepts()) ready.named = worker.id
      }
      return ready
    },
    all: () => desks.values(),
    forget(lease) {
      for (const { holding } of rooms) holding.delete(lease)
    },
  }
}

function createDesk(worker: Worker, room: Room | undefined): Desk {
  const handouts: Handout[] = []
  let wake: (() => void) | undefined
  const free = (endingLease?: string): number => {
    if (room === undefined) return Number.POSITIVE_INFINITY
    const ending = endingLease !== undefined && room.holding.has(endingLease) ? 1 : 0
    return room.leasesMax - room.holding.size + ending
  }
  return {
    worker,
    room,
    free,
    accepts: (endingLease) => free(endingLease) > 0,
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
