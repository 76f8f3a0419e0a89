/**
 * A task as a stream: first the task as it is, then every later event of its log, until it rests. Each event has an id
 * that says how far its reader has come, `<seq>.<k>`: the first k events of the log's row seq have been seen. Who comes
 * back with such an id gets only what followed, also from a task that has ended; the log is the same for everybody, so
 * all streams of a task show the same events in the same order.
 */
import { MoleculeError } from '../../../errors.ts'
import type { LogEntry, Reception, TaskView } from '../../../inbox/inbox.ts'
import { isFinal, type StreamResponse, type Task } from '../../../protocol/a2a.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { HttpExchange } from '../server/answer.ts'
import { type SseEvent, type SseOptions, writeEvents } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'

/** A place in the log of a task. */
interface StreamCursor {
  readonly seq: number
  readonly seen: number
}

export interface TaskStream {
  readonly taskId: string
  /** Sent first: the task as it was at the cursor. Absent when the reader goes on from where it was. */
  readonly snapshot?: Task
  readonly from: StreamCursor
}

export interface OpenStreamOptions {
  readonly taskId: string
  readonly view: TaskView
  /** The `Last-Event-ID` header. */
  readonly lastEventId: string | undefined
  /** Whether a task that has ended may be streamed without a cursor: its send does, a subscription does not. */
  readonly allowEnded: boolean
}

/** Everything that can be refused is refused here, before the stream begins. */
export async function openStream(reception: Reception, options: OpenStreamOptions): Promise<TaskStream> {
  const { taskId, view, lastEventId, allowEnded } = options
  const now = await reception.snapshot(taskId, view)
  if (now === undefined) throw new MoleculeError('not_found', `there is no task ${taskId}`, { details: { taskId } })
  if (lastEventId) {
    const cursor = readCursor(lastEventId)
    if (cursor !== undefined && (await isInLog(reception, { taskId, cursor, ...now }))) return { taskId, from: cursor }
  } else if (!allowEnded && isFinal(now.task.status.state)) {
    throw new MoleculeError('unsupported_operation', `task ${taskId} has ended; there is nothing to subscribe to`)
  }
  return { taskId, snapshot: now.task, from: { seq: now.seq + 1, seen: 0 } }
}

export interface WriteStreamOptions extends SseOptions {
  readonly reception: Reception
  readonly waitingCalls: WaitingCalls
  /** By whose token it is read; the stream ends when that is revoked. */
  readonly identity: Pick<Identity, 'tokenId'>
  /** An event as this reader's binding and version say it. */
  readonly form: (event: StreamResponse) => unknown
}

/** Writes the stream until its task rests, its reader goes away or the door closes; the task itself runs on. */
export function writeStream(exchange: HttpExchange, stream: TaskStream, options: WriteStreamOptions): Promise<void> {
  const { waitingCalls, identity } = options
  return waitingCalls.run({ response: exchange.response, identity }, (signal) =>
    writeEvents(exchange, taskEvents(stream, options, signal), options),
  )
}

async function* taskEvents(
  { taskId, snapshot, from }: TaskStream,
  { reception, form }: WriteStreamOptions,
  signal: AbortSignal,
): AsyncIterable<SseEvent> {
  const sse = (seq: number, seen: number, event: StreamResponse): SseEvent => ({
    id: `${seq}.${seen}`,
    data: JSON.stringify(form(event)),
  })
  if (snapshot !== undefined) yield sse(from.seq, from.seen, { task: snapshot })
  for await (const { seq, wire } of reception.follow(taskId, from.seq - 1, signal)) {
    for (let index = seq === from.seq ? from.seen : 0; index < wire.length; index++) {
      yield sse(seq, index + 1, wire[index] as StreamResponse)
    }
  }
}

function readCursor(lastEventId: string): StreamCursor | undefined {
  const [, seq, seen] = /^(\d{1,15})\.(\d{1,9})$/.exec(lastEventId) ?? []
  return seq === undefined ? undefined : { seq: Number(seq), seen: Number(seen) }
}

interface Claimed {
  readonly taskId: string
  readonly cursor: StreamCursor
  readonly seq: number
  readonly firstSeq: number
}

/** Whether this task's log still has the row that was seen last; another's row, or a pruned one, is no place to go on. */
async function isInLog(reception: Reception, { taskId, cursor, seq, firstSeq }: Claimed): Promise<boolean> {
  const lastSeen = cursor.seen === 0 ? cursor.seq - 1 : cursor.seq
  if (lastSeen < Math.max(1, firstSeq) || lastSeen > seq) return false
  const row = await firstOf(reception.follow(taskId, lastSeen - 1, new AbortController().signal))
  return row?.seq === lastSeen
}

async function firstOf(entries: AsyncIterable<LogEntry>): Promise<LogEntry | undefined> {
  for await (const entry of entries) return entry
  return undefined
}
