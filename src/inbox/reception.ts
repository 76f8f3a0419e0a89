/**
 * The door's face of the local inbox: admit, then follow. Readers wait on watchers, which only say "look again", and
 * read the store; so a reader sees exactly what is durable, in commit order.
 */
import { isFinal, isInterrupted, type Message, type Task, type TaskState } from '../protocol/a2a.ts'
import { sql, type Transaction } from '../store/store.ts'
import { type Admission, admit, prepareLetter } from './admit.ts'
import { cancel } from './cancel.ts'
import { readLog } from './event-log.ts'
import type { Handout, Letter, LogEntry, Reception } from './inbox.ts'
import { ofTask } from './of-task.ts'
import type { Office } from './office.ts'
import type { Rest } from './rest.ts'
import { listTasks } from './task-list.ts'
import { findTask, readSnapshot, readTask, showTask, type TaskRow, taskNotFound, toTask } from './tasks.ts'

/** A missed wake-up costs a reader at most this. */
export const LOOK_MS = 5000

/** How the door's face moves the worker's: a lease made on admission, and work that a cancel set free. */
export interface Backroom {
  handOut(workerId: string, handout: Handout): void
  look(): void
}

export function createReception(office: Office, backroom: Backroom): Reception {
  const { store, desks } = office
  const write = (letter: Letter) => {
    const prepared = prepareLetter(letter)
    const ready = desks.ready(letter.workspaceId)
    return store.write(() => admit(prepared, ready), letter.workspaceId)
  }
  const announce = ({ workspaceId }: Letter, { admitted }: Admission) => {
    office.passed('admitted')
    if (!admitted.duplicate) office.changed(workspaceId, admitted.taskId)
  }
  const handOn = ({ handout }: Admission) => {
    if (handout !== undefined) backroom.handOut(handout.worker, handout.handout)
  }
  return {
    async admit(letter) {
      const admission = await write(letter)
      announce(letter, admission)
      handOn(admission)
      return admission.admitted
    },
    async send(letter, { maxMs, onAdmitted }, signal) {
      const admission = await write(letter)
      const { taskId } = admission.admitted
      announce(letter, admission)
      // From before anybody has the message in hand, so that its end cannot be missed.
      const news = listen(office, taskId)
      try {
        handOn(admission)
        await onAdmitted?.(admission.admitted)
        const task = await settled(office, { taskId, maxMs, news, begun: begunBy(letter, admission) }, signal)
        if (task === undefined) throw taskNotFound(taskId)
        return task
      } finally {
        news.stop()
      }
    },
    task: (taskId, view = {}) => store.read(() => readTask(taskId, view)),
    snapshot: (taskId, view = {}) => store.read(() => readSnapshot(taskId, view)),
    list: (query) => store.read(() => listTasks(query)),
    follow: (taskId, afterSeq, signal) => follow(office, { taskId, afterSeq }, signal),
    async settled(taskId, maxMs, signal) {
      const news = listen(office, taskId)
      try {
        return await settled(office, { taskId, maxMs, news }, signal)
      } finally {
        news.stop()
      }
    },
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

/** A task that began with this message, which a worker of this process has in hand. */
interface Begun {
  readonly contextId: string
  readonly messageId: string
  readonly message: Message
}

function begunBy({ envelope }: Letter, { admitted, handout }: Admission): Begun | undefined {
  if (handout?.handout.type !== 'lease') return undefined
  return { contextId: admitted.contextId, messageId: handout.handout.lease.messageId, message: envelope.message }
}

interface Wait {
  readonly taskId: string
  readonly maxMs: number
  readonly news: News
  readonly begun?: Begun | undefined
}

async function settled(office: Office, wait: Wait, signal: AbortSignal): Promise<Task | undefined> {
  const { store, clock } = office
  const { taskId, news, begun } = wait
  const untilMs = clock.monotonicMs() + wait.maxMs
  // What was handed out on admission has not ended yet: the first look is spared.
  let looks = begun === undefined
  for (;;) {
    const leftMs = untilMs - clock.monotonicMs()
    const isLate = leftMs <= 0 || signal.aborted
    if (looks || isLate) {
      const found = await store.read(() => atRest(taskId, isLate))
      if (found !== undefined) return found.task
    }
    looks = true
    const rest = await news.next(Math.min(leftMs, LOOK_MS), signal)
    if (begun !== undefined && rest !== undefined) return restingTask(taskId, begun, rest)
  }
}

/** Undefined while waiting makes sense. */
function* atRest(taskId: string, isLate: boolean): Transaction<{ task: Task | undefined } | undefined> {
  const row = yield* findTask(taskId, {})
  if (row === undefined) return { task: undefined }
  const over = isLate || isAtRest(row.state) || (yield* isPaused(row))
  return over ? { task: yield* showTask(row, {}) } : undefined
}

function restingTask(id: string, { contextId, messageId, message }: Begun, { state, said, reply, atMs }: Rest): Task {
  return toTask({ id, contextId, state, said, atMs }, [{ id: messageId, message, reply }], {})
}

/** Nobody knows how long a pause will last: who waits for a task of which nothing runs is answered at once. */
function* isPaused({ id, workspace_id: workspaceId }: TaskRow): Transaction<boolean> {
  const rows = yield* sql(
    `select 1 as paused from workspace_load where workspace_id = $1 and paused = 1 and not exists (
       select 1 from messages m where ${ofTask('m', '$2')} and m.state in ('leased', 'stopping'))`,
    [workspaceId, id],
  )
  return rows.length > 0
}

export interface News {
  /** Resolves when there is news, after `maxMs`, or on abort; with how the task came to rest, where that was the news. */
  next(maxMs: number, signal: AbortSignal): Promise<Rest | undefined>
  stop(): void
}

/**
 * News of one task, or of one workspace. What came while nobody listened is not lost: the next wait then ends at once. Made without signals
 * of its own, because every blocking call waits here and an abort costs as much as a query.
 */
export function listen({ clock, watchers }: Office, id: string): News {
  let fresh = false
  let rest: Rest | undefined
  let wake: () => void = () => undefined
  const stop = watchers.watch(id, (given) => {
    fresh = true
    rest = given
    wake()
  })
  return {
    stop,
    async next(maxMs, signal) {
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
      return rest
    },
  }
}
