/**
 * Leases that ran out: their worker has been silent for a whole lease time. Running out changes nothing by itself, so
 * a worker that only slept can still settle; what counts is whether another has taken over, and that raises the epoch.
 */
import { sql, statement, type Transaction, together } from '../../store/store.ts'
import { recordChange } from '../read/event-log.ts'
import { type Claim, claimHead, type HeadRow, selectHead } from './claim.ts'
import { freeLost, LOST_COLUMNS, type LostMessage, recordLoss } from './lost-turn.ts'

/** Lapsed leases seen to in one look; the next look sees to the rest. */
const LAPSED_MAX = 50

export interface LapsedLease {
  readonly workspaceId: string
  readonly conversationId: string
  readonly hosted: boolean
  readonly worker: string
  /** Cancelled meanwhile: to be freed, not taken over. */
  readonly stopping: boolean
}

interface LapsedRow {
  workspace_id: string
  conversation_id: string
  hosted: number
  worker: string
  state: string
}

/**
 * What workers of this process could take over: of hosted workspaces and of the ones they named. Others would only fill
 * the list and hide what can be done. While a workspace is paused nobody takes over in it: that would be a new turn.
 */
export function* findLapsed(named: readonly string[]): Transaction<LapsedLease[]> {
  const ours = named.map((_, index) => `$${index + 1}`).join(', ') || 'null'
  const rows = yield* sql<LapsedRow>(
    `select c.workspace_id, c.id as conversation_id, l.hosted, c.worker, m.state from messages m
     join conversations c on c.id = m.conversation_id join workspace_load l on l.workspace_id = c.workspace_id
     where m.state in ('leased', 'stopping') and c.worker is not null and c.lease_until < now_ms()
     and (m.state = 'stopping' or (l.paused = 0 and (l.hosted = 1 or c.workspace_id in (${ours}))))
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

/** Takes the lapsed lease over for the worker, with the slot it held; undefined when the message has ended instead. */
export function* takeLapsed(lapsed: LapsedLease, worker: string): Transaction<Claim | undefined> {
  const held = yield* stillLapsed(lapsed)
  if (held === undefined) return undefined
  const { message, head } = held
  const loss = yield* recordLoss(message)
  if (!loss.again) {
    yield* freeLost(message, loss)
    return undefined
  }
  // The counters of the message were raised since it was read.
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

/** Frees a cancelled conversation whose worker will never say that it has stopped. */
export function* freeLapsed(lapsed: LapsedLease): Transaction<void> {
  const held = yield* stillLapsed(lapsed)
  if (held?.message.state === 'stopping') yield* freeLost(held.message, yield* recordLoss(held.message))
}

interface Held {
  readonly message: LostMessage
  readonly head: HeadRow
}

function* stillLapsed({ workspaceId, conversationId }: LapsedLease): Transaction<Held | undefined> {
  const [, [lapsed], [message], [head]] = (yield* together([
    statement('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId]),
    statement(
      'select id from conversations where id = $1 and worker is not null and lease_until < now_ms() /*for update*/',
      [conversationId],
    ),
    statement(`select ${LOST_COLUMNS} from messages where conversation_id = $1 and state in ('leased', 'stopping')`, [
      conversationId,
    ]),
    selectHead(conversationId),
  ])) as unknown as [unknown, object[], LostMessage[], HeadRow[]]
  return lapsed === undefined || message === undefined || head === undefined ? undefined : { message, head }
}
