/**
 * Claiming: a worker takes the oldest ready conversation of a workspace and its oldest unsettled message. The lease is
 * on the conversation: locks on message rows would let a second worker run the next message of the same conversation.
 * Each claim raises the epoch, so every later call of an earlier holder is stale.
 */
import { restoreEnvelope } from '../../protocol/envelope.ts'
import type { Sender } from '../../protocol/request.ts'
import { type Statement, sql, statement, type Transaction, together } from '../../store/store.ts'
import { leaseConversation, OLDEST_UNSETTLED_ID } from '../rows/conversation.ts'
import { type LogItem, type NewLogEntry, recordChange } from '../rows/log.ts'
import { claimMessage } from '../rows/message.ts'
import { setTaskState } from '../rows/task.ts'
import type { Lease } from '../worker.ts'

/** Conversations claimed in one transaction, so that a long queue does not cost one commit for each. */
export const CLAIMS_MAX = 32

/** For whom a message is claimed. In a hosted workspace the claim begins the turn; a bridge calls `begin` later. */
export interface Claimant {
  readonly worker: string
  readonly hosted: boolean
}

export interface Claim {
  readonly lease: Lease
  readonly entry: NewLogEntry
  /** The caller runs these together with its own writes. */
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
  parks: number
  parked_ms: number | null
}

const HEAD = `select c.id as conversation_id, c.principal, c.context_id, c.lease_epoch, m.id, m.task_id, m.envelope,
  m.sender, m.idempotency_key, m.failures, m.losses, m.interrupted, m.session_retried, m.parks,
  case when m.parks > 0 then now_ms() - m.parked_at end as parked_ms`

const OLDEST = `${HEAD} from (select id, principal, context_id, lease_epoch, settled_n from conversations
    where workspace_id = $1 and ready_at <= now_ms()
    and exists (select 1 from workspace_load l where l.workspace_id = $1 and l.paused = 0)
    order by ready_at, id limit 1 /*for update skip locked*/) c
  join messages m on m.id = ${OLDEST_UNSETTLED_ID}`

/** The oldest ready conversation of a workspace and its next message; no row while the workspace is paused. */
export const selectOldest = (workspaceId: string): Statement => statement(OLDEST, [workspaceId])

/** One conversation in any state, and its next message. */
export const selectHead = (conversationId: string): Statement =>
  statement(`${HEAD} from conversations c join messages m on m.id = ${OLDEST_UNSETTLED_ID} where c.id = $1`, [
    conversationId,
  ])

/** Claims the oldest ready conversation. The caller counts the slot and runs the writes. */
export function* claimOldest(workspaceId: string, claimant: Claimant): Transaction<Claim | undefined> {
  const [[head]] = (yield* together([selectOldest(workspaceId)])) as unknown as [HeadRow[]]
  return head === undefined ? undefined : claimHead(workspaceId, head, claimant)
}

/** Claims ready conversations for the worker, the oldest first, up to the free slots and the limit. */
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

/** The lease of that message, and the writes that store it. */
export function claimHead(workspaceId: string, head: HeadRow, { worker, hosted }: Claimant): Claim {
  const epoch = head.lease_epoch + 1
  const writes = [
    leaseConversation(head.conversation_id, { epoch, worker }),
    claimMessage(head.id, hosted),
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
    ...(head.parks > 0 && { parked: { times: head.parks, sinceMs: head.parked_ms ?? 0 } }),
  }
}

/** A new attempt resets the partial reply of the earlier one, so that a retry never doubles text. */
function startedEntry(head: HeadRow): NewLogEntry {
  const again = head.failures + head.losses + head.interrupted + head.session_retried + head.parks > 0
  const items: LogItem[] = [{ t: 'status', state: 'TASK_STATE_WORKING' }]
  if (again) items.push({ t: 'reset' })
  return { taskId: head.task_id, messageId: head.id, items }
}
