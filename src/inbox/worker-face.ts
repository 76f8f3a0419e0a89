/**
 * The worker's face of the local inbox: lease, extend, append, settle, and waiting. What a worker is handed is
 * committed before it is handed out; a lease whose worker has left meanwhile goes back unharmed.
 */
import { toMoleculeError } from '../errors.ts'
import { append, extend } from './append.ts'
import { ask } from './ask.ts'
import type { Claim } from './claim.ts'
import type { Desk } from './desks.ts'
import type { Handout, Inbox, LeaseKey, Standing, Worker } from './inbox.ts'
import { leaseName, type Office } from './office.ts'
import { settle } from './settle.ts'
import { resume, type Suspended, suspend } from './suspend.ts'

export interface WorkerFace extends Inbox {
  handOut(workerId: string, handout: Handout): void
  /** A lease that no worker has begun, or will ever hear of, goes back unharmed. */
  giveBack(key: LeaseKey): void
}

/** Gets work for a worker that has just come. */
export type Fill = (desk: Desk) => Promise<void>

export interface WorkerFaceOptions {
  readonly office: Office
  readonly fill: Fill
  /** There may be work to hand out at this time. */
  readonly lookAfter: (delayMs: number) => void
}

export function createWorkerFace({ office, fill, lookAfter }: WorkerFaceOptions): WorkerFace {
  const { store, desks, held, keepSession } = office
  const accepts = (workerId: string) => desks.get(workerId) !== undefined
  /** What was taken over is no longer in anybody's hands here, and may never be settled. */
  const noted = (key: LeaseKey, standing: Standing) => {
    if (standing === 'stale') held.delete(leaseName(key))
    return standing
  }
  const passOn = (next: { worker: string; claim: Claim } | undefined) => {
    if (next === undefined) return
    const { lease } = next.claim
    office.changed(lease.workspaceId, lease.taskId)
    face.handOut(next.worker, { type: 'lease', lease })
  }
  const suspended = async (key: LeaseKey, work: Promise<Suspended>) => {
    const { answer, next } = await work
    office.changed(key.workspaceId, key.taskId)
    passOn(next)
    return answer
  }
  const face: WorkerFace = {
    async *leases(worker: Worker, signal: AbortSignal): AsyncIterable<Handout> {
      const desk = desks.open(worker)
      try {
        await fill(desk)
        for (let handout = await desk.take(signal); handout; handout = await desk.take(signal)) yield handout
      } finally {
        desks.close(desk)
        for (const handout of desk.clear()) if (handout.type === 'lease') face.giveBack(handout.lease)
      }
    },
    extend: (keys) =>
      Promise.all(keys.map(async (key) => noted(key, await store.write(() => extend(key), key.workspaceId)))),
    async append(key, events) {
      const standing = noted(key, await store.write(() => append(key, events), key.workspaceId))
      office.changed(key.workspaceId, key.taskId)
      return standing
    },
    async settle(key, outcome, unsent) {
      const settlement = { key, outcome, unsent, accepts, keepSession }
      const { answer, next } = await store.write(() => settle(settlement), key.workspaceId)
      held.delete(leaseName(key))
      office.passed('settled')
      office.changed(key.workspaceId, key.taskId)
      passOn(next)
      if (outcome.type === 'retry') lookAfter(outcome.afterMs)
      return answer
    },
    suspend: (key) =>
      suspended(
        key,
        store.write(() => suspend(key, accepts), key.workspaceId),
      ),
    resume: (key) => store.write(() => resume(key), key.workspaceId),
    ask: (key, question) =>
      suspended(
        key,
        store.write(() => ask(key, question, accepts), key.workspaceId),
      ),
    handOut(workerId, handout) {
      const desk = desks.get(workerId)
      if (desk !== undefined && handout.type === 'lease') held.add(leaseName(handout.lease))
      if (desk !== undefined) desk.put(handout)
      else if (handout.type === 'lease') face.giveBack(handout.lease)
    },
    giveBack(key) {
      face.settle(key, { type: 'released', interrupted: false }).catch((error) => {
        held.delete(leaseName(key))
        office.log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be given back')
      })
    },
  }
  return face
}
