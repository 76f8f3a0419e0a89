/**
 * The door side of the local inbox: `Reception`. Readers wait on watchers, which only say "read again", and then read
 * the store; so a reader sees exactly what is durable, in commit order.
 */
import { isFinal, isInterrupted, type Message, type Task, type TaskState } from '../../protocol/a2a.ts'
import type { Transaction } from '../../store/store.ts'
import type { Admission } from '../commands/admit.ts'
import { amend, withdraw } from '../commands/amend.ts'
import { type CanceledTask, cancel } from '../commands/cancel.ts'
import { readLog } from '../read/event-log.ts'
import { createLogWire, readStreamedReply, type StreamedReply, toWholeReplies } from '../read/log-wire.ts'
import { listTasks } from '../read/task-list.ts'
import {
  findTask,
  readArtifact,
  readSnapshot,
  readTask,
  type StoredTaskRow,
  showTask,
  taskNotFound,
  toTask,
} from '../read/tasks.ts'
import { whyStopped } from '../read/why-waiting.ts'
import type { FollowOptions, Letter, LogEntry, Reception } from '../reception.ts'
import { isAdmitted } from '../rows/dedupe.ts'
import { hasRunningTurn } from '../rows/lease.ts'
import type { StatusMessage } from '../rows/status-message.ts'
import type { TaskResult } from '../rows/task.ts'
import { admitLetter, announce, forward } from './admissions.ts'
import type { Children } from './children.ts'
import type { InboxContext } from './context.ts'
import type { Delegations } from './delegations.ts'
import { lookForWork } from './directives.ts'
import { markRead } from './mark-read.ts'
import { type ChangeListener, listenForChanges, RECHECK_MS } from './watchers.ts'

export interface ReceptionOptions {
  readonly delegations: Delegations
  readonly children: Pick<Children, 'lookAfter'>
}

export function createReception(context: InboxContext, { delegations, children }: ReceptionOptions): Reception {
  const { store, workerQueues } = context
  const admit = (letter: Letter) =>
    letter.parent === undefined ? admitLetter(context, letter) : delegations.admit(letter, letter.parent)
  const sendAndWait: Reception['send'] = async (letter, { maxMs, onAdmitted }, signal) => {
    const admission = await admit(letter)
    const { taskId } = admission.admitted
    announce(context, letter, admission)
    // Listen before a worker gets the message, so that its end cannot be missed.
    const changes = listenForChanges(context, taskId)
    try {
      forward(context, admission)
      await onAdmitted?.(admission.admitted)
      const task = await waitForResult(context, { taskId, maxMs, changes, opened: taskOpenedBy(admission) }, signal)
      if (task === undefined) throw taskNotFound(taskId)
      return task
    } finally {
      changes.stop()
    }
  }
  const afterCancel = async ({ workspaceId, running }: CanceledTask, taskId: string) => {
    context.changed(workspaceId, taskId)
    if (running !== undefined) workerQueues.stop(running)
    lookForWork(context)
    await children.lookAfter()
  }
  return {
    async admit(letter) {
      const admission = await admit(letter)
      announce(context, letter, admission)
      forward(context, admission)
      return admission.admitted
    },
    send: (letter, wait, signal) =>
      letter.parent === undefined
        ? sendAndWait(letter, wait, signal)
        : delegations.whileWaiting(letter.parent, () => sendAndWait(letter, wait, signal)),
    isAdmitted: (message) => store.read(() => isAdmitted(message)),
    whileWaiting: (parent, work) => delegations.whileWaiting(parent, work),
    task: (taskId, view = {}) => store.read(() => readTask(taskId, view)),
    snapshot: (taskId, view = {}) => store.read(() => readSnapshot(taskId, view)),
    artifact: (taskId, artifactId, view = {}) => store.read(() => readArtifact(taskId, artifactId, view)),
    list: (query) => store.read(() => listTasks(query)),
    markRead: (task, reader, answer) => markRead(context, task, { reader, answer }),
    follow: (taskId, from, signal) => follow(context, { taskId, ...from }, signal),
    async waitForResult(taskId, maxMs, signal) {
      const changes = listenForChanges(context, taskId)
      try {
        return await waitForResult(context, { taskId, maxMs, changes }, signal)
      } finally {
        changes.stop()
      }
    },
    amend: (message, text) => store.write(() => amend(message, text)),
    async withdraw(message) {
      const canceled = await store.write(() => withdraw(message))
      if (canceled !== undefined) await afterCancel(canceled, message.taskId)
      return canceled !== undefined
    },
    async cancel(taskId, view = {}) {
      await afterCancel(await store.write(() => cancel(taskId, view), view.workspaceId), taskId)
      const task = await store.read(() => readTask(taskId, view))
      if (task === undefined) throw taskNotFound(taskId)
      return task
    },
  }
}

const hasResult = (state: TaskState): boolean => isFinal(state) || isInterrupted(state)

async function* follow(
  context: InboxContext,
  { taskId, untilFinal = false, wholeReplies = false, ...from }: FollowOptions & { taskId: string },
  signal: AbortSignal,
): AsyncIterable<LogEntry> {
  const { store } = context
  const changes = listenForChanges(context, taskId)
  const isOver = untilFinal ? isFinal : hasResult
  const log = createLogWire()
  let { afterSeq } = from
  try {
    while (!signal.aborted) {
      const { task, rows, earlier } = await store.read(function* () {
        const row: StoredTaskRow | undefined = yield* findTask(taskId, {})
        if (row === undefined) throw taskNotFound(taskId)
        const page = yield* readLog(taskId, afterSeq)
        const unknown = wholeReplies || from.afterSeq <= 0 ? [] : log.unknownMessages(page)
        const streamed: [string, StreamedReply][] = []
        for (const messageId of unknown) {
          streamed.push([messageId, yield* readStreamedReply({ taskId, messageId, throughSeq: from.afterSeq })])
        }
        return { task: row, rows: page, earlier: streamed }
      })
      for (const [messageId, streamed] of earlier) log.learn(messageId, streamed)
      const ids = { id: taskId, contextId: task.context_id }
      for (const row of rows) yield wholeReplies ? toWholeReplies(ids, row) : log.toEntry(ids, row)
      afterSeq = rows.at(-1)?.seq ?? afterSeq
      if (rows.length > 0) continue
      if (isOver(task.state)) return
      await changes.next(RECHECK_MS, signal)
    }
  } finally {
    changes.stop()
  }
}

/** A task that this message opened, and that a worker of this process holds. */
interface OpenedTask {
  readonly contextId: string
  readonly messageId: string
  readonly message: Message
}

function taskOpenedBy({ admitted, toWorker }: Admission): OpenedTask | undefined {
  if (toWorker?.directive.type !== 'lease') return undefined
  const { messageId, envelope } = toWorker.directive.lease
  return { contextId: admitted.contextId, messageId, message: envelope.message }
}

interface WaitForResultOptions {
  readonly taskId: string
  readonly maxMs: number
  readonly changes: ChangeListener
  readonly opened?: OpenedTask | undefined
}

async function waitForResult(
  context: InboxContext,
  options: WaitForResultOptions,
  signal: AbortSignal,
): Promise<Task | undefined> {
  const { store, clock } = context
  const { taskId, changes, opened, maxMs } = options
  const untilMs = clock.monotonicMs() + maxMs
  // A message that was leased on admission has not ended yet: the first read is skipped.
  let reads = opened === undefined
  for (;;) {
    const leftMs = untilMs - clock.monotonicMs()
    const isLate = leftMs <= 0 || signal.aborted
    if (reads || isLate) {
      const found = await store.read(() => readTaskIfDone(context, taskId, isLate))
      if (found !== undefined) return found.task
    }
    reads = true
    const result = await changes.next(Math.min(leftMs, RECHECK_MS), signal)
    if (opened !== undefined && result !== undefined) return taskFromResult(taskId, opened, result)
  }
}

/** Undefined while the caller should wait on. */
function* readTaskIfDone(
  context: InboxContext,
  taskId: string,
  isLate: boolean,
): Transaction<{ task: Task | undefined } | undefined> {
  const row = yield* findTask(taskId, {})
  if (row === undefined) return { task: undefined }
  if (isLate || hasResult(row.state)) return { task: yield* showTask(row, {}) }
  const reason = yield* whyNotStarting(row, context)
  if (reason === undefined) return undefined
  // A task whose turn was lost or waits for its retry is `working` and has no reason of its own.
  return { task: yield* showTask({ ...row, status_message: row.status_message ?? JSON.stringify(reason) }, {}) }
}

function taskFromResult(
  id: string,
  { contextId, messageId, message }: OpenedTask,
  { state, status, reply, atMs }: TaskResult,
): Task {
  return toTask({ id, contextId, state, status, atMs }, [{ id: messageId, message, reply }], {})
}

/**
 * Prevents a call that hangs until its limit: a workspace that is paused or offline may stay so for days. Its callers
 * are answered at once with the reason, unless a turn of their task still runs.
 */
function* whyNotStarting(
  { id, workspace_id: workspaceId }: StoredTaskRow,
  { workerQueues }: InboxContext,
): Transaction<StatusMessage | undefined> {
  const reason = yield* whyStopped(workspaceId, () => workerQueues.serves(workspaceId))
  if (reason === undefined) return undefined
  return (yield* hasRunningTurn(id)) ? undefined : reason
}
