/**
 * The worker's face of the local inbox: lease, extend, append, settle. A lease is handed out only after the commit
 * that made it; one whose worker has left meanwhile goes back unharmed.
 */
import { toMoleculeError } from '../errors.ts'
import { sql, type Transaction } from '../store/store.ts'
import { append, extend } from './append.ts'
import { type Claim, openWorkspaces, takeOldest } from './claim.ts'
import type { Desk } from './desks.ts'
import { closeBooks } from './event-log.ts'
import type { Handout, Inbox, Lease, LeaseKey, Worker } from './inbox.ts'
import type { Office } from './office.ts'
import { settle } from './settle.ts'

/** Wake-ups are hints; this is how late a missed one can be. */
const SWEEP_MS = 5000
/** Workspaces served by one look for ready work; the next look serves the rest. */
const FILL_WORKSPACES_MAX = 50

export interface WorkerFace extends Inbox {
  handOut(workerId: string, lease: Lease): void
  /** Looks for ready work now; soon, not at once, and never for nothing: what is ready is leased. */
  look(): void
  close(): void
}

export function createWorkerFace(office: Office): WorkerFace {
  const { store, clock, log, desks, watchers, keepSession } = office
  let closed = false

  const fill = async (desk: Desk) => {
    const { id, workspaces } = desk.worker
    const open = workspaces === 'hosted' ? await store.read(() => openWorkspaces(FILL_WORKSPACES_MAX)) : workspaces
    for (const workspaceId of open) {
      let claim = await store.write(() => claimOne(workspaceId, id))
      while (claim !== undefined) {
        watchers.changed(claim.lease.taskId)
        face.handOut(id, claim.lease)
        claim = await store.write(() => claimOne(workspaceId, id))
      }
    }
  }
  const look = () => {
    if (closed) return
    for (const desk of desks.all()) {
      fill(desk).catch((error) => log.warn({ err: toMoleculeError(error) }, 'looking for ready work failed'))
    }
  }
  let cancelSweep = clock.after(SWEEP_MS, function sweep() {
    look()
    cancelSweep = clock.after(SWEEP_MS, sweep)
  })

  const giveBack = (key: LeaseKey) => {
    face.settle(key, { type: 'released', interrupted: false }).catch((error) => {
      log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be given back')
    })
  }

  const face: WorkerFace = {
    async *leases(worker: Worker, signal: AbortSignal): AsyncIterable<Handout> {
      const desk = desks.open(worker)
      try {
        await fill(desk)
        for (let handout = await desk.take(signal); handout; handout = await desk.take(signal)) yield handout
      } finally {
        desks.close(desk)
        for (const handout of desk.clear()) if (handout.type === 'lease') giveBack(handout.lease)
      }
    },
    extend: (keys) => Promise.all(keys.map((key) => store.write(() => extend(key)))),
    async append(key, events) {
      const standing = await store.write(() => append(key, events))
      watchers.changed(key.taskId)
      return standing
    },
    async settle(key, outcome, unsent) {
      const accepts = (workerId: string) => desks.get(workerId) !== undefined
      const { answer, next } = await store.write(() => settle({ key, outcome, unsent, accepts, keepSession }))
      watchers.changed(key.taskId)
      if (next !== undefined) {
        watchers.changed(next.claim.lease.taskId)
        face.handOut(next.worker, next.claim.lease)
      }
      if (outcome.type === 'retry') clock.after(outcome.afterMs, look)
      return answer
    },
    handOut(workerId, lease) {
      const desk = desks.get(workerId)
      if (desk === undefined) giveBack(lease)
      else desk.put({ type: 'lease', lease })
    },
    look,
    close() {
      closed = true
      cancelSweep()
    },
  }
  return face
}

function* claimOne(workspaceId: string, worker: string): Transaction<Claim | undefined> {
  const [load] = yield* sql<{ slots: number; running: number }>(
    'select slots, running from workspace_load where workspace_id = $1 /*for update*/',
    [workspaceId],
  )
  if (load === undefined || load.running >= load.slots) return undefined
  const claim = yield* takeOldest(workspaceId, worker)
  if (claim === undefined) return undefined
  yield* closeBooks({ workspaceId, running: 1, waiting: -1, entries: [claim.entry] })
  return claim
}
