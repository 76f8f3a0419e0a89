/**
 * Worker queues: where workers of this process wait for directives. A queue is memory only. Every lease in it is
 * already committed, and a lease that is still in the queue when its worker leaves is released.
 */
import { createWaitQueue, type WaitQueue } from '../../wait.ts'
import type { ReadyWorkers } from '../commands/admit.ts'
import type { Directive, LeaseKey, Worker } from '../worker.ts'

/** How many leases a bridge can hold at a time, and the ids of those it holds. */
export interface LeaseCapacity {
  readonly leasesMax: number
  readonly holding: Set<string>
}

export interface WorkerQueue extends WaitQueue<Directive> {
  readonly worker: Worker
  /** Absent where the workspace's slots are the only limit. */
  readonly capacity: LeaseCapacity | undefined
  /** How many more leases the worker can take, once the named lease has ended. */
  free(endingLease?: string): number
  accepts(endingLease?: string): boolean
}

/** A turn that runs, and its worker. */
interface RunningTurn {
  readonly worker: string
  readonly key: LeaseKey
}

export interface WorkerQueues {
  open(worker: Worker, capacity?: LeaseCapacity): WorkerQueue
  close(queue: WorkerQueue): void
  get(workerId: string): WorkerQueue | undefined
  /** Tells the worker, if it waits here, to stop that turn. A worker elsewhere learns it with its next renewal. */
  stop(turn: RunningTurn): void
  ready(workspaceId: string): ReadyWorkers
  /** True when a worker waits here that has named this workspace, busy or not. */
  serves(workspaceId: string): boolean
  all(): Iterable<WorkerQueue>
  /** The lease takes no more capacity of any worker. */
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
    stop: ({ worker, key }) => workerQueues.get(worker)?.put({ type: 'stop', key }),
    ready(workspaceId) {
      const ready: { hosted?: string; named?: string } = {}
      for (const queue of workerQueues.values()) {
        const { worker } = queue
        if (worker.workspaces === 'hosted') ready.hosted = worker.id
        else if (worker.workspaces.includes(workspaceId) && queue.accepts()) ready.named = worker.id
      }
      return ready
    },
    serves(workspaceId) {
      for (const { worker } of workerQueues.values()) {
        if (worker.workspaces !== 'hosted' && worker.workspaces.includes(workspaceId)) return true
      }
      return false
    },
    all: () => workerQueues.values(),
    forget(lease) {
      for (const { holding } of capacities) holding.delete(lease)
    },
  }
}

function createWorkerQueue(worker: Worker, capacity: LeaseCapacity | undefined): WorkerQueue {
  const free = (endingLease?: string): number => {
    if (capacity === undefined) return Number.POSITIVE_INFINITY
    const ending = endingLease !== undefined && capacity.holding.has(endingLease) ? 1 : 0
    return capacity.leasesMax - capacity.holding.size + ending
  }
  return {
    ...createWaitQueue<Directive>(),
    worker,
    capacity,
    free,
    accepts: (endingLease) => free(endingLease) > 0,
  }
}
