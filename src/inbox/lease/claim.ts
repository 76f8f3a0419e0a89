/**
 * Claiming: a worker takes the oldest ready conversation of a workspace and with it its oldest unsettled message.
 * The lease is on the conversation, because locking message rows would let a second worker run the next message of
 * the same conversation. Taking raises the epoch; from then on every word of an earlier holder is stale.
 */

import { restoreEnvelope } from '../../protocol/envelope.ts'
import type { Sender } from '../../protocol/request.ts'
import { type Statement, sql, statement, type Transaction, together } from '../../store/store.ts'
import type { Lease } from '../inbox.ts'
import { type LogItem, type NewLogEntry, recordChange } from '../read/event-log.ts'
import { setTaskState } from '../read/tasks.ts'
import { OLDEST_UNSETTLED_ID } from './conversation-readiness.ts'

/** How long a worker may be silent before another takes over; it renews every third of that. */
export const LEASE_MS = 30_000
/** Conversations leased in one transaction: a worker that comes to a long queue is not to pay a commit for each. */
export const CLAIMS_MAX = 32

/** For whom a message is claimed. In a hosted workspace the claim begins the turn; a bridge calls `begin` later. */
export interface Claimant {
  readonly worker: string
  readonly hosted: boolean
}

export interface Claim {
  readonly lease: Lease
  readonly entry: NewLogEntry
  /** What makes it so: for the caller to run with its own writes. */
  readonly writes: readonly Statement[]
}

/** A claim for a slot that another turn of the worker gave up. */
export interface NextClaim {
  readonly worker: string
  readonly claim: Claim
}

/** Workspaces with a ready conversation and a free slot, the longest waiting first. */
export function* findClaimableWorkspaces(limit: number): Transaction<string[]> {
  const rows = yield* sql<{ workspace_id: string }>(
    `select l.workspace_id from workspace_load l
     join conversations c on c.workspace_id = l.workspace_id and c.ready_at <= now_ms()
     where l.hosted = 1 and l.paused = 0 and l.running < l.slots
     group by l.workspace_id order by min(c.ready_at) limit $1`,
    [limit],
  )
  return rows.map((row) => row.workspace_id)
}

/** A conversation and its oldest unsettled message. */
export interface HeadRow {
  conversation_id: string
  principal: string
  context_id: string
  lease_epoch: number
  id: string
  task_id: string
  envelope: string
  sender: string
  idempotency_key: string
  failures: number
  losses: number
  interrupted: number
  session_retried: number
}

const HEAD = `select c.id as conversation_id, c.principal, c.context_id, c.lease_epoch, m.id, m.task_id, m.envelope,
  m.sender, m.idempotency_key, m.failures, m.losses, m.interrupted, m.session_retried`

const OLDEST = `${HEAD} from (select id, principal, context_id, lease_epoch, settled_n from conversations
    where workspace_id = $1 and ready_at <= now_ms()
    and exists (select 1 from workspace_load l where l.workspace_id = $1 and l.paused = 0)
    order by ready_at, id limit 1 /*for update skip locked*/) c
  join messages m on m.id = ${OLDEST_UNSETTLED_ID}`

/** The oldest ready conversation of a workspace, with the message that is its turn; none while it is paused. */
export const selectOldest = (workspaceId: string): Statement => statement(OLDEST, [workspaceId])

/** One conversation, whatever its state, with the message that is its turn. */
export const selectHead = (conversationId: string): Statement =>
  statement(`${HEAD} from conversations c join messages m on m.id = ${OLDEST_UNSETTLED_ID} where c.id = $1`, [
    conversationId,
  ])

/** Leases the oldest ready conversation to the worker. The caller counts the slot and runs the writes. */
export function* claimOldest(workspaceId: string, claimant: Claimant): Transaction<Claim | undefined> {
  const [[head]] = (yield* together([selectOldest(workspaceId)])) as unknown as [HeadRow[]]
  return head === undefined ? undefined : claimHead(workspaceId, head, claimant)
}

/** Leases what is ready to the worker, the oldest first, as far as there are slots and up to the limit. */
export function* claimReady(workspaceId: string, worker: string, claimsMax = CLAIMS_MAX): Transaction<Claim[]> {
  const [load] = yield* sql<{ slots: number; running: number; hosted: number }>(
    'select slots, running, hosted from workspace_load where workspace_id = $1 /*for update*/',
    [workspaceId],
  )
  const free = load === undefined ? 0 : load.slots - load.running
  const claimant = { worker, hosted: load?.hosted === 1 }
  const claims: Claim[] = []
  while (claims.length < Math.min(free, claimsMax)) {
    const claim = yield* claimOldest(workspaceId, claimant)
    if (claim === undefined) break
    yield* together(claim.writes)
    claims.push(claim)
  }
  const entries = claims.map(({ entry }) => entry)
  if (claims.length > 0) {
    yield* together(recordChange({ workspaceId, running: claims.length, waiting: -claims.length, entries }))
  }
  return claims
}

const LEASE = `update conversations set lease_epoch = $2, worker = $3, lease_until = now_ms() + ${LEASE_MS},
  ready_at = null where id = $1`

/** The lease of that message to the worker, and the writes that make it so. */
export function claimHead(workspaceId: string, head: HeadRow, { worker, hosted }: Claimant): Claim {
  const epoch = head.lease_epoch + 1
  const writes = [
    statement(LEASE, [head.conversation_id, epoch, worker]),
    statement(`update messages set state = 'leased', begun = $2, appended = 0, asked = 0 where id = $1`, [
      head.id,
      hosted ? 1 : 0,
    ]),
    setTaskState(head.task_id, 'TASK_STATE_WORKING'),
  ]
  return { lease: toLease(workspaceId, head, epoch), entry: startedEntry(head), writes }
}

function toLease(workspaceId: string, head: HeadRow, epoch: number): Lease {
  return {
    workspaceId,
    conversationId: head.conversation_id,
    messageId: head.id,
    epoch,
    taskId: head.task_id,
    contextId: head.context_id,
    principal: head.principal,
    sender: JSON.parse(head.sender) as Sender,
    envelope: restoreEnvelope(head.envelope),
    idempotencyKey: head.idempotency_key,
    failures: head.failures,
    losses: head.losses,
    interrupted: head.interrupted === 1,
    sessionRetried: head.session_retried === 1,
  }
}

/** A new attempt voids what an earlier one showed of its reply, so that a retry never doubles text. */
function startedEntry(head: HeadRow): NewLogEntry {
  const again = head.failures + head.losses + head.interrupted + head.session_retried > 0
  const items: LogItem[] = [{ t: 'status', state: 'TASK_STATE_WORKING' }]
  if (again) items.push({ t: 'reset' })
  return { taskId: head.task_id, messageId: head.id, items }
}
