/**
 * Waiting turns: a turn that waits for another agent or for a person keeps its lease and its conversation and gives up
 * its slot. Otherwise agents that wait for each other would deadlock on their slots. When the wait ends, the turn takes
 * a slot back, over the limit if need be.
 */
import { sql, type Transaction, together } from '../../store/store.ts'
import { recordChange } from '../rows/log.ts'
import { IS_RUNNING, type MessageState } from '../rows/message.ts'
import { setSuspended } from '../rows/message-updates.ts'
import type { LeaseKey, LeaseStanding } from '../worker.ts'
import { claimOldest, type NextClaim } from './claim.ts'

/** Turns of one workspace that may wait at a time; a further wait is refused. */
const SUSPENDED_MAX = 8

export interface HeldTurn {
  state: MessageState
  suspended: number
  worker: string
  hosted: number
  waiting_turns: number
  /** More turns run than there are slots. */
  over_limit: boolean
}

/** The turn if its lease is still held, with the workspace locked. */
export function* lockHeldTurn(key: LeaseKey): Transaction<HeldTurn | undefined> {
  const [load] = yield* sql<{ hosted: number; slots: number; running: number; suspended: number }>(
    'select hosted, slots, running, suspended from workspace_load where workspace_id = $1 /*for update*/',
    [key.workspaceId],
  )
  const [row] = yield* sql<{ state: MessageState; suspended: number; worker: string }>(
    `select m.state, m.suspended, c.worker from messages m join conversations c on c.id = m.conversation_id
     where m.id = $1 and c.lease_epoch = $2 and m.${IS_RUNNING}`,
    [key.messageId, key.epoch],
  )
  if (row === undefined || load === undefined) return undefined
  return { ...row, hosted: load.hosted, waiting_turns: load.suspended, over_limit: load.running > load.slots }
}

export interface SuspendOutput {
  readonly answer: LeaseStanding | 'refused'
  /** The claim that got the free slot. */
  readonly next: NextClaim | undefined
}

export function* suspend(key: LeaseKey, accepts: (workerId: string) => boolean): Transaction<SuspendOutput> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return { answer: 'stale', next: undefined }
  if (message.state === 'stopping') return { answer: 'stop', next: undefined }
  if (message.suspended === 1) return { answer: 'held', next: undefined }
  if (message.waiting_turns >= SUSPENDED_MAX) return { answer: 'refused', next: undefined }
  const passesSlot = !message.over_limit && accepts(message.worker)
  const claimant = { worker: message.worker, hosted: message.hosted === 1 }
  const claim = passesSlot ? yield* claimOldest(key.workspaceId, claimant) : undefined
  const change = {
    workspaceId: key.workspaceId,
    running: claim === undefined ? -1 : 0,
    suspended: 1,
    waiting: claim === undefined ? 0 : -1,
    entries: claim === undefined ? [] : [claim.entry],
  }
  yield* together([setSuspended(key.messageId, true), ...(claim?.writes ?? []), ...recordChange(change)])
  return { answer: 'held', next: claim && { worker: message.worker, claim } }
}

export function* resume(key: LeaseKey): Transaction<LeaseStanding> {
  const message = yield* lockHeldTurn(key)
  if (message === undefined) return 'stale'
  yield* takeSlotBack(key, message)
  return message.state === 'stopping' ? 'stop' : 'held'
}

export function* takeSlotBack(key: LeaseKey, { suspended }: HeldTurn): Transaction<void> {
  if (suspended === 0) return
  yield* together([
    setSuspended(key.messageId, false),
    ...recordChange({ workspaceId: key.workspaceId, running: 1, suspended: -1 }),
  ])
}
