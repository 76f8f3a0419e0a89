/**
 * Takeover of leases that ran out: the worker was silent for a whole lease time. Running out changes nothing by itself,
 * so a worker that only slept can still settle. The takeover raises the epoch, and with that the old lease is stale.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { IS_RUNNING, inStates, type MessageState } from '../rows/message.ts'
import { type Claim, claimHead, type HeadRow, selectHead } from './claim.ts'
import { freeLost, LOST_COLUMNS, type LostMessage, recordLoss } from './lose.ts'

/** Leases taken over in one sweep; the next sweep takes the rest. */
const LAPSED_MAX = 50

export interface LapsedLease {
  readonly workspaceId: string
  readonly conversationId: string
  readonly hosted: boolean
  readonly worker: string
  /** Its task is cancelled: free the conversation, do not take over. */
  readonly stopping: boolean
}

interface LapsedRow {
  workspace_id: string
  conversation_id: string
  hosted: number
  worker: string
  state: MessageState
}

/**
 * Lapsed leases that workers of this process can take over: of hosted workspaces and of named ones. Other leases would
 * only fill the limited list. A paused workspace is left out, because a takeover would start a new turn.
 */
export function* findLapsed(named: readonly string[]): Transaction<LapsedLease[]> {
  const ours = named.map((_, index) => `$${index + 1}`).join(', ') || 'null'
  const rows = yield* sql<LapsedRow>(
    `select c.workspace_id, c.id as conversation_id, l.hosted, c.worker, m.state from messages m
     join conversations c on c.id = m.conversation_id join workspace_load l on l.workspace_id = c.workspace_id
     where m.${IS_RUNNING} and c.worker is not null and c.lease_until < now_ms()
     and (m.${inStates('stopping')} or (l.paused = 0 and (l.hosted = 1 or c.workspace_id in (${ours}))))
     order by c.lease_until limit ${LAPSED_MAX}`,
    named,
  )
  return rows.map((row) => ({
    workspaceId: row.workspace_id,
    conversationId: row.conversation_id,
    hosted: row.hosted === 1,
    worker: row.worker,
    stopping: row.state === 'stopping',
  }))
}

/** Takes the lease over for the worker, with its slot; undefined when the message has ended instead. */
export function* takeLapsed(lapsed: LapsedLease, worker: string): Transaction<Claim | undefined> {
  const held = yield* lockLapsed(lapsed)
  if (held === undefined) return undefined
  const { message, head } = held
  const loss = yield* recordLoss(message)
  if (!loss.again) {
    yield* freeLost(message, loss)
    return undefined
  }
  // `recordLoss` has raised the counters since the row was read.
  const lost = message.begun === 0 ? head : { ...head, losses: head.losses + 1, interrupted: 1 }
  const claim = claimHead(lapsed.workspaceId, lost, { worker, hosted: lapsed.hosted })
  const change = {
    workspaceId: lapsed.workspaceId,
    running: message.suspended,
    suspended: -message.suspended,
    waiting: loss.waiting,
    entries: [claim.entry],
  }
  yield* together([...claim.writes, ...recordChange(change)])
  return claim
}

/** Frees the conversation of a cancelled turn whose worker is gone and will never settle. */
export function* freeLapsed(lapsed: LapsedLease): Transaction<void> {
  const held = yield* lockLapsed(lapsed)
  if (held?.message.state === 'stopping') yield* freeLost(held.message, yield* recordLoss(held.message))
}

/** Reads the lease again under the lock; undefined when it was renewed or settled since. */
function* lockLapsed({
  workspaceId,
  conversationId,
}: LapsedLease): Transaction<{ message: LostMessage; head: HeadRow } | undefined> {
  const [, [lapsed], [message], [head]] = (yield* together([
    lockWorkspace(workspaceId),
    statement(
      'select id from conversations where id = $1 and worker is not null and lease_until < now_ms() /*for update*/',
      [conversationId],
    ),
    statement(`select ${LOST_COLUMNS} from messages where conversation_id = $1 and ${IS_RUNNING}`, [conversationId]),
    selectHead(conversationId),
  ])) as unknown as [unknown, object[], LostMessage[], HeadRow[]]
  return lapsed === undefined || message === undefined || head === undefined ? undefined : { message, head }
}
