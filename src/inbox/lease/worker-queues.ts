/**
 * Worker queues: where workers of this process wait for directives. A queue is memory only: what is handed out is leased in the
 * store already, and what is still in a queue when its worker leaves is given back.
 */
import type { Directive, Worker } from '../inbox.ts'

/** How many leases a worker elsewhere can hold at a time, and the names of those it holds. */
export interface LeaseCapacity {
  readonly leasesMax: number
  readonly holding: Set<string>
}

export interface WorkerQueue {
  readonly worker: Worker
  /** Absent where the workspace's slots are the only limit. */
  readonly capacity: LeaseCapacity | undefined
  /** How many more leases it has capacity for, once the one named here has ended. */
  free(endingLease?: string): number
  accepts(endingLease?: string): boolean
  put(directive: Directive): void
  /** The next directive, or undefined once the signal has aborted. */
  take(signal: AbortSignal): Promise<Directive | undefined>
  /** Takes what was never picked up; the queue is then closed. */
  clear(): Directive[]
}

export interface WorkerQueues {
  open(worker: Worker, capacity?: LeaseCapacity): WorkerQueue
  close(queue: WorkerQueue): void
  get(workerId: string): WorkerQueue | undefined
  /** A worker that would take a message of a hosted workspace, and one that serves this workspace by name. */
  ready(workspaceId: string): { hosted?: string; named?: string }
  all(): Iterable<WorkerQueue>
  /** The lease takes no capacity any more, whoever has it. */
  forget(lease: string): void
}

export function createWorkerQueues(): WorkerQueues {
  const workerQueues = new Map<string, WorkerQueue>()
  const capacities = new Set<LeaseCapacity>()
  return {
    open(worker, capacity) {
      if (workerQueues.has(worker.id)) throw new Error(`worker ${worker.id} has a queue already`)
      const queue = createWorkerQueue(worker, capacity)
      workerQueues.set(worker.id, queue)
      if (capacity !== undefined) capacities.add(capacity)
      return queue
    },
    close(queue) {
      workerQueues.delete(queue.worker.id)
      if (queue.capacity !== undefined) capacities.delete(queue.capacity)
    },
    get: (workerId) => workerQueues.get(workerId),
    ready(workspaceId) {
      const ready: { hosted?: string; named?: string } = {}
      for (const queue of workerQueues.values()) {
        const { worker } = queue
        if (worker.workspaces === 'hosted') ready.hosted = worker.id
        else if (worker.workspaces.includes(workspaceId) && queue.accepts()) ready.named = worker.id
      }
      return ready
    },
    all: () => workerQueues.values(),
    forget(lease) {
      for (const { holding } of capacities) holding.delete(lease)
    },
  }
}

function createWorkerQueue(worker: Worker, capacity: LeaseCapacity | undefined): WorkerQueue {
  const directives: Directive[] = []
  let wake: (() => void) | undefined
  const free = (endingLease?: string): number => {
    if (capacity === undefined) return Number.POSITIVE_INFINITY
    const ending = endingLease !== undefined && capacity.holding.has(endingLease) ? 1 : 0
    return capacity.leasesMax - capacity.holding.size + ending
  }
  return {
    worker,
    capacity,
    free,
    accepts: (endingLease) => free(endingLease) > 0,
    put(directive) {
      directives.push(directive)
      wake?.()
    },
    async take(signal) {
      while (directives.length === 0 && !signal.aborted) {
        const woken = Promise.withResolvers<void>()
        wake = woken.resolve
        signal.addEventListener('abort', wake, { once: true })
        await woken.promise
        // A signal that outlives a million messages must not keep a listener of each.
        signal.removeEventListener('abort', wake)
      }
      return signal.aborted ? undefined : directives.shift()
    },
    clear: () => directives.splice(0),
  }
}
