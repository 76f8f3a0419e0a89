/** Why a task has not begun, as a status message: it waits for an older message, a slot, a worker or a resume. */
import { formatWait } from '../../duration.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { whyOffline } from '../offline.ts'
import { OLDEST_UNSETTLED_ID } from '../rows/conversation.ts'
import type { MessageState } from '../rows/message.ts'
import type { StatusMessage } from '../rows/status-message.ts'

interface HeadRow {
  id: string
  task_id: string
  state: MessageState
  in_ms: number
  parks: number
  /** Says why it was parked, if it was. */
  status: string | null
}

interface LoadRow {
  paused: number
  hosted: number
  heard_at: number | null
  signed_off_at: number | null
  now: number
  slots: number
  running: number
  waiting: number
}

interface WaitingTask {
  readonly id: string
  readonly workspace_id: string
  readonly conversation_id: string
}

/** A workspace that starts no message now, for an unknown time. */
export type StoppedWorkspace = 'paused' | 'offline'

export interface QueuedStatus {
  readonly status: StatusMessage
  /** Undefined where the workspace starts messages. */
  readonly workspaceIs?: StoppedWorkspace | undefined
}

export function* whyWaiting(task: WaitingTask): Transaction<StatusMessage> {
  return (yield* whyQueued(task)).status
}

/** The same, with what a program may ask of it. */
export function* whyQueued(task: WaitingTask): Transaction<QueuedStatus> {
  const [head] = yield* sql<HeadRow>(
    `select m.id, m.task_id, m.state, m.ready_at - now_ms() as in_ms,
       m.parks, t.status_message as status from conversations c
     join messages m on m.id = ${OLDEST_UNSETTLED_ID} join tasks t on t.id = m.task_id where c.id = $1`,
    [task.conversation_id],
  )
  const [load] = yield* sql<LoadRow>(LOAD, [task.workspace_id])
  const stopped = load && stoppedReason(load)
  if (stopped !== undefined) return { status: waitingStatus(stopped.text), workspaceIs: stopped.workspaceIs }
  return { status: waitingStatus(reasonText(task, head, load)) }
}

const waitingStatus = (text: string): StatusMessage => ({ parts: [{ text }], code: 'waiting' })

const LOAD = `select l.paused, l.hosted, l.slots, l.running, l.waiting, p.heard_at, p.signed_off_at, now_ms() as now
  from workspace_load l left join presence p on p.workspace_id = l.workspace_id where l.workspace_id = $1`

/**
 * Why the workspace starts no message now, for an unknown time: it is paused or offline. Undefined when it starts some.
 * A worker that waits for its messages in this process also counts, whether it sends heartbeats or not.
 */
export function* whyStopped(workspaceId: string, hasWorker: () => boolean): Transaction<StatusMessage | undefined> {
  const [load] = yield* sql<LoadRow>(LOAD, [workspaceId])
  const reason = load && stoppedReason(load)
  if (reason === undefined || (load?.paused !== 1 && hasWorker())) return undefined
  return waitingStatus(reason.text)
}

interface StoppedReason {
  readonly workspaceIs: StoppedWorkspace
  readonly text: string
}

function stoppedReason({ paused, hosted, heard_at, signed_off_at, now }: LoadRow): StoppedReason | undefined {
  if (paused === 1) return { workspaceIs: 'paused', text: 'waiting: the workspace is paused' }
  const lastHeartbeat = { nowMs: now, heardAtMs: heard_at ?? undefined, hasSignedOff: signed_off_at !== null }
  const offline = hosted === 1 ? undefined : whyOffline(lastHeartbeat)
  if (offline === undefined) return undefined
  return { workspaceIs: 'offline', text: `waiting: the workspace is offline (${offline})` }
}

function reasonText(task: WaitingTask, head: HeadRow | undefined, load: LoadRow | undefined): string {
  if (head !== undefined && head.task_id !== task.id) {
    return `waiting behind message ${head.id} of the same conversation${retryText(head)}`
  }
  if (load !== undefined && load.running >= load.slots) {
    return `waiting for a free slot: ${load.running} of ${load.slots} in use, ${load.waiting} waiting`
  }
  return 'waiting for a worker'
}

/** When the message before is tried again, and why it was parked, if it was. The conversation has one sender. */
function retryText({ state, in_ms: inMs, parks, status: stored }: HeadRow): string {
  if (state !== 'queued' || inMs <= 0) return ''
  const status = stored === null ? undefined : (JSON.parse(stored) as StatusMessage)
  const isParked = parks > 0 || status?.code === 'waiting'
  return isParked ? `: ${status?.parts[0]?.text ?? ''}` : `, next try in ${formatWait(inMs)}`
}
