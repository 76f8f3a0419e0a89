/**
 * A task as a stream: first the task, then every later event of its log, until the task rests (a send) or has ended (a
 * subscription). The id of an event is a cursor, `<seq>.<k>`: the reader has seen the first k events of row seq. A reader
 * that reconnects with it receives only later events, also of a task that has ended. All streams read the same log, so
 * they show the same events in the same order.
 */
import { MoleculeError } from '../../../errors.ts'
import type { LogEntry, Reception, TaskView } from '../../../inbox/reception.ts'
import { isFinal, type StreamResponse, type Task } from '../../../protocol/a2a.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { HttpExchange } from '../server/answer.ts'
import { type SseEvent, type SseOptions, writeEvents } from '../server/sse.ts'
import type { WaitingCalls } from '../server/waiting-calls.ts'

/** A position in the log of a task. */
interface StreamCursor {
  readonly seq: number
  readonly seen: number
}

type StreamReader = Pick<Identity, 'principal' | 'conversationId'>

export interface TaskStream {
  readonly taskId: string
  readonly reader: StreamReader
  /** Sent first: the task at the cursor. Absent when the reader resumes. */
  readonly snapshot?: Task
  readonly from: StreamCursor
  /** The stream goes on while the task waits for its caller. */
  readonly untilFinal: boolean
}

export interface OpenStreamOptions {
  readonly taskId: string
  readonly reader: StreamReader
  readonly view: TaskView
  /** The `Last-Event-ID` header. */
  readonly lastEventId: string | undefined
  /** A subscription is for a task that has not ended, and stays open until it has. A send ends when the task rests. */
  readonly isSubscription: boolean
}

/** Every refusal comes here, before the stream begins: afterwards the status is already sent. */
export async function openStream(reception: Reception, options: OpenStreamOptions): Promise<TaskStream> {
  const { taskId, reader, view, lastEventId, isSubscription } = options
  const current = await reception.snapshot(taskId, view)
  if (current === undefined) throw new MoleculeError('not_found', `there is no task ${taskId}`, { details: { taskId } })
  if (lastEventId) {
    const cursor = readCursor(lastEventId)
    if (
      cursor !== undefined &&
      (await isInLog(reception, { taskId, cursor, seq: current.lastSeq ?? current.seq, firstSeq: current.firstSeq }))
    )
      return { taskId, reader, from: cursor, untilFinal: isSubscription }
  } else if (isSubscription && isFinal(current.task.status.state)) {
    throw new MoleculeError('unsupported_operation', `task ${taskId} has ended; there is nothing to subscribe to`)
  }
  const from = { seq: current.seq + 1, seen: 0 }
  return { taskId, reader, snapshot: current.task, from, untilFinal: isSubscription }
}

export interface WriteStreamOptions extends SseOptions {
  readonly reception: Reception
  readonly waitingCalls: WaitingCalls
  /** The reader's token; the stream ends when it is revoked. */
  readonly identity: Identity
  /** Converts an event to the format of the reader's binding and version. */
  readonly form: (event: StreamResponse) => unknown
}

/** Writes the stream until its end, until the reader disconnects or the door closes. The task itself goes on. */
export function writeStream(exchange: HttpExchange, stream: TaskStream, options: WriteStreamOptions): Promise<void> {
  const { waitingCalls, identity } = options
  return waitingCalls.run({ response: exchange.response, identity }, (signal) =>
    writeEvents(exchange, taskEvents(stream, toSse(options.form), { reception: options.reception, signal }), options),
  )
}

const toSse =
  (form: WriteStreamOptions['form']) =>
  (event: StreamResponse, seq: number, seen: number): SseEvent => ({
    id: `${seq}.${seen}`,
    data: JSON.stringify(form(event)),
  })

/** The events of a stream, each as `make` makes it, until its end or until the signal aborts. */
export async function* taskEvents<T>(
  { taskId, reader, snapshot, from, untilFinal }: TaskStream,
  make: (event: StreamResponse, seq: number, seen: number) => T,
  { reception, signal }: { readonly reception: Reception; readonly signal: AbortSignal },
): AsyncIterable<T> {
  if (snapshot !== undefined) yield make({ task: snapshot }, from.seq, from.seen)
  for await (const { seq, wire } of reception.follow(taskId, { afterSeq: from.seq - 1, untilFinal }, signal)) {
    for (let index = seq === from.seq ? from.seen : 0; index < wire.length; index++) {
      yield make(wire[index] as StreamResponse, seq, index + 1)
    }
  }
  if (signal.aborted || reader.conversationId === undefined) return
  // The reader took the last event, so it has the result.
  const task = await reception.task(taskId, { historyLength: 0, artifacts: false })
  if (task !== undefined) await reception.markRead(task, reader)
}

function readCursor(lastEventId: string): StreamCursor | undefined {
  const [, seq, seen] = /^(\d{1,15})\.(\d{1,9})$/.exec(lastEventId) ?? []
  return seq === undefined ? undefined : { seq: Number(seq), seen: Number(seen) }
}

/** Whether the task's log still has the row that the reader saw last. A row of another task, or a pruned one, has not. */
async function isInLog(
  reception: Reception,
  { taskId, cursor, seq, firstSeq }: { taskId: string; cursor: StreamCursor; seq: number; firstSeq: number },
): Promise<boolean> {
  const lastSeen = cursor.seen === 0 ? cursor.seq - 1 : cursor.seq
  if (lastSeen < Math.max(1, firstSeq) || lastSeen > seq) return false
  const row = await firstOf(reception.follow(taskId, { afterSeq: lastSeen - 1 }, new AbortController().signal))
  return row?.seq === lastSeen
}

async function firstOf(entries: AsyncIterable<LogEntry>): Promise<LogEntry | undefined> {
  for await (const entry of entries) return entry
  return undefined
}
