/**
 * The door's face of the local inbox: admit, then follow. Readers wait on watchers, which only say "look again", and
 * read the store; so a reader sees exactly what is durable, in commit order.
 */
import { isFinal, isInterrupted, type Task, type TaskState } from '../protocol/a2a.ts'
import { sql, type Transaction } from '../store/store.ts'
import { admit, prepareLetter } from './admit.ts'
import { cancel } from './cancel.ts'
import { readLog } from './event-log.ts'
import type { Handout, LogEntry, Reception } from './inbox.ts'
import type { Office } from './office.ts'
import { listTasks } from './task-list.ts'
import { findTask, readSnapshot, readTask, showTask, type TaskRow, taskNotFound } from './tasks.ts'

/** A missed wake-up costs a reader at most this. */
export const LOOK_MS = 5000

/** How the door's face moves the worker's: a lease made on admission, and work that a cancel set free. */
export interface Backroom {
  handOut(workerId: string, handout: Handout): void
  look(): void
}

export function createReception(office: Office, backroom: Backroom): Reception {
  const { store, desks } = office
  return {
    async admit(letter) {
      const prepared = prepareLetter(letter)
      const ready = desks.ready(letter.workspaceId)
      const { admitted, handout } = await store.write(() => admit(prepared, ready), letter.workspaceId)
      office.passed('admitted')
      if (!admitted.duplicate) office.changed(letter.workspaceId, admitted.taskId)
      if (handout !== undefined) backroom.handOut(handout.worker, handout.handout)
      return admitted
    },
    task: (taskId, view = {}) => store.read(() => readTask(taskId, view)),
    snapshot: (taskId, view = {}) => store.read(() => readSnapshot(taskId, view)),
    list: (query) => store.read(() => listTasks(query)),
    follow: (taskId, afterSeq, signal) => follow(office, { taskId, afterSeq }, signal),
    settled: (taskId, maxMs, signal) => settled(office, { taskId, maxMs }, signal),
    async cancel(taskId, view = {}) {
      const { workspaceId, running } = await store.write(() => cancel(taskId, view), view.workspaceId)
      office.changed(workspaceId, taskId)
      if (running !== undefined) desks.get(running.worker)?.put({ type: 'stop', key: running.key })
      backroom.look()
      const task = await store.read(() => readTask(taskId, view))
      if (task === undefined) throw taskNotFound(taskId)
      return task
    },
  }
}

const isAtRest = (state: TaskState): boolean => isFinal(state) || isInterrupted(state)

async function* follow(
  office: Office,
  from: { taskId: string; afterSeq: number },
  signal: AbortSignal,
): AsyncIterable<LogEntry> {
  const { store } = office
  const news = listen(office, from.taskId)
  let { afterSeq } = from
  try {
    while (!signal.aborted) {
      const { task, entries } = await store.read(function* () {
        const row: TaskRow | undefined = yield* findTask(from.taskId, {})
        if (row === undefined) throw taskNotFound(from.taskId)
        return { task: row, entries: yield* readLog({ id: row.id, contextId: row.context_id }, afterSeq) }
      })
      yield* entries
      afterSeq = entries.at(-1)?.seq ?? afterSeq
      if (entries.length > 0) continue
      if (isAtRest(task.state)) return
      await news.next(LOOK_MS, signal)
    }
  } finally {
    news.stop()
  }
}

async function settled(
  office: Office,
  { taskId, maxMs }: { taskId: string; maxMs: number },
  signal: AbortSignal,
): Promise<Task | undefined> {
  const { store, clock } = office
  const news = listen(office, taskId)
  const untilMs = clock.monotonicMs() + maxMs
  let looked = false
  try {
    for (;;) {
      const leftMs = untilMs - clock.monotonicMs()
      const isLate = leftMs <= 0 || signal.aborted
      const found = await store.read(function* () {
        const row = yield* findTask(taskId, {})
        if (row === undefined) return { task: undefined }
        const over = isLate || isAtRest(row.state)
        // A message that was handed out on admission is not asked about: most are, and have ended at the next look.
        const asks = !over && (looked || row.state === 'TASK_STATE_SUBMITTED')
        return over || (asks && (yield* isPaused(row))) ? { task: yield* showTask(row, {}) } : undefined
      })
      if (found !== undefined) return found.task
      looked = true
      await news.next(Math.min(leftMs, LOOK_MS), signal)
    }
  } finally {
    news.stop()
  }
}

/** Nobody knows how long a pause will last: who waits for a task of which nothing runs is answered at once. */
function* isPaused({ id, workspace_id: workspaceId }: TaskRow): Transaction<boolean> {
  const rows = yield* sql(
    `select 1 as paused from workspace_load where workspace_id = $1 and paused = 1 and not exists (
       select 1 from messages m where m.task_id = $2 and m.state in ('leased', 'stopping'))`,
    [workspaceId, id],
  )
  return rows.length > 0
}

/**
 * News of one task, or of one workspace. What came while nobody listened is not lost: the next wait then ends at once. Made without signals
 * of its own, because every blocking call waits here and an abort costs as much as a query.
 */
export function listen({ clock, watchers }: Office, id: string) {
  let fresh = false
  let wake: () => void = () => undefined
  const stop = watchers.watch(id, () => {
    fresh = true
    wake()
  })
  return {
    stop,
    async next(maxMs: number, signal: AbortSignal): Promise<void> {
      if (!fresh && !signal.aborted) {
        const woken = Promise.withResolvers<void>()
        wake = woken.resolve
        const stopTimer = clock.after(maxMs, wake)
        signal.addEventListener('abort', wake, { once: true })
        await woken.promise
        signal.removeEventListener('abort', wake)
        stopTimer()
      }
      fresh = false
    },
  }
}
