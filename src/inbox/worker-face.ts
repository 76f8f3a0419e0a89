/**
 * The worker's face of the local inbox: lease, extend, append, settle, and waiting. What a worker is handed is
 * committed before it is handed out; a lease whose worker has left meanwhile goes back unharmed.
 */
import { toMoleculeError } from '../errors.ts'
import type { Transaction } from '../store/store.ts'
import { append, extend } from './append.ts'
import { ask } from './ask.ts'
import type { Claim } from './claim.ts'
import type { Desk } from './desks.ts'
import type { Handout, Inbox, LeaseKey, NumberedEvents, Outcome, Standing, Worker } from './inbox.ts'
import { leaseName, type Office } from './office.ts'
import type { KeepSession } from './outcome.ts'
import { settle } from './settle.ts'
import { resume, type Suspended, suspend } from './suspend.ts'

export interface WorkerFace extends Inbox {
  /** A settle whose session token is kept for another host than ours. */
  settleFor(key: LeaseKey, settling: Settling): ReturnType<Inbox['settle']>
  handOut(workerId: string, handout: Handout): void
  /** A lease that no worker has begun, or will ever hear of, goes back unharmed. */
  giveBack(key: LeaseKey): void
}

export interface Settling {
  readonly outcome: Outcome
  readonly unsent: NumberedEvents | undefined
  readonly keepSession: KeepSession
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
  const accepting = (key: LeaseKey) => (workerId: string) => desks.get(workerId)?.accepts(leaseName(key)) === true
  const letGo = (key: LeaseKey) => {
    held.delete(leaseName(key))
    desks.forget(leaseName(key))
  }
  /** What was taken over is no longer in anybody's hands here, and may never be settled. */
  const noted = (key: LeaseKey, standing: Standing) => {
    if (standing === 'stale') letGo(key)
    return standing
  }
  const passOn = (next: { worker: string; claim: Claim } | undefined) => {
    if (next === undefined) return
    const { lease } = next.claim
    office.changed(lease.workspaceId, lease.taskId)
    face.handOut(next.worker, { type: 'lease', lease })
  }
  const suspended = async (key: LeaseKey, work: () => Transaction<Suspended>) => {
    const { answer, next } = await store.write(work, key.workspaceId)
    // It waits and takes no room; what its slot went to does.
    if (answer === 'held') desks.forget(leaseName(key))
    office.changed(key.workspaceId, key.taskId)
    passOn(next)
    return answer
  }
  const face: WorkerFace = {
    leases: (worker, signal) => sitAt(worker, { desks, fill, giveBack: (key) => face.giveBack(key) }, signal),
    extend: (keys) =>
      Promise.all(keys.map(async (key) => noted(key, await store.write(() => extend(key), key.workspaceId)))),
    async append(key, events) {
      const standing = noted(key, await store.write(() => append(key, events), key.workspaceId))
      office.changed(key.workspaceId, key.taskId)
      return standing
    },
    settle: (key, outcome, unsent) => face.settleFor(key, { outcome, unsent, keepSession }),
    async settleFor(key, settling) {
      const settlement = { key, ...settling, accepts: accepting(key) }
      const { answer, next, rest } = await store.write(() => settle(settlement), key.workspaceId)
      letGo(key)
      office.passed('settled')
      office.changed(key.workspaceId, key.taskId, rest)
      passOn(next)
      if (settling.outcome.type === 'retry') lookAfter(settling.outcome.afterMs)
      return answer
    },
    suspend: (key) => suspended(key, () => suspend(key, accepting(key))),
    resume: (key) => store.write(() => resume(key), key.workspaceId),
    ask: (key, question) => suspended(key, () => ask(key, question, accepting(key))),
    handOut(workerId, handout) {
      const desk = desks.get(workerId)
      if (handout.type !== 'lease') return desk?.put(handout)
      // Two that were admitted at once may both have counted on the last place.
      if (desk?.accepts() !== true) return face.giveBack(handout.lease)
      held.add(leaseName(handout.lease))
      desk.room?.holding.add(leaseName(handout.lease))
      desk.put(handout)
    },
    giveBack(key) {
      const failed = (error: unknown) => {
        letGo(key)
        office.log.warn({ err: toMoleculeError(error), messageId: key.messageId }, 'a lease could not be given back')
      }
      // Another worker may have room for it.
      face.settle(key, { type: 'released', interrupted: false }).then(() => lookAfter(0), failed)
    },
  }
  return face
}

interface Seat {
  readonly desks: Office['desks']
  readonly fill: Fill
  readonly giveBack: (key: LeaseKey) => void
}

async function* sitAt(worker: Worker, { desks, fill, giveBack }: Seat, signal: AbortSignal): AsyncIterable<Handout> {
  const desk = desks.open(worker)
  try {
    await fill(desk)
    for (let handout = await desk.take(signal); handout; handout = await desk.take(signal)) yield handout
  } finally {
    desks.close(desk)
    for (const handout of desk.clear()) if (handout.type === 'lease') giveBack(handout.lease)
  }
}
