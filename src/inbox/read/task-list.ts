/**
 * Lists of tasks, the last changed first, in pages of bounded rows and bytes. A cursor names a task, so that no page
 * repeats one.
 */
import type { Task, TaskState } from '../../protocol/a2a.ts'
import { PAGE_BYTES_MAX } from '../../store/page-budget.ts'
import { sql, type Transaction, type Value } from '../../store/store.ts'
import type { TaskPage, TaskQuery, TaskView } from '../inbox.ts'
import { principalCondition } from './principals.ts'
import { isReplyDamaged } from './reply-format.ts'
import { messagesOfTask } from './task-messages.ts'
import { readTask } from './tasks.ts'

export function* listTasks(query: TaskQuery): Transaction<TaskPage> {
  const { where, values } = conditions(query)
  const [count] = yield* sql<{ total: number }>(`select count(*) as total from tasks t where ${where}`, values)
  const from = query.after === undefined ? { where, values } : afterCursor(where, values, query.after)
  // One more than the page, to know whether there is a next one.
  const rows = yield* sql<{ id: string; updated_at: number; fits: number }>(
    `select id, updated_at, case when bytes_through <= ${PAGE_BYTES_MAX} or bytes_through = bytes then 1 else 0 end as fits
     from (select p.*, sum(p.bytes) over (order by p.updated_at desc, p.id desc rows unbounded preceding) as bytes_through
       from (select t.id, t.updated_at, ${bytesOf(query)} as bytes from tasks t where ${from.where}
         order by t.updated_at desc, t.id desc limit ${query.limit + 1}) p) b
     order by updated_at desc, id desc`,
    from.values,
  )
  const page = rows.slice(0, query.limit).filter(({ fits }) => fits === 1)
  const tasks: Task[] = []
  const { historyLength, artifacts = true, detail = false } = query
  const view = { artifacts, detail, ...(historyLength !== undefined && { historyLength }) }
  for (const { id } of page) {
    const task = yield* readListedTask(id, view)
    if (task !== undefined) tasks.push(task)
  }
  const last = rows.length > page.length ? page.at(-1) : undefined
  return { tasks, total: count?.total ?? 0, ...(last && { next: { updatedAtMs: last.updated_at, id: last.id } }) }
}

/** A damaged reply fails its own task alone: the list shows that task without artifacts, and why. */
function* readListedTask(id: string, view: TaskView): Transaction<Task | undefined> {
  try {
    return yield* readTask(id, view)
  } catch (error) {
    if (!isReplyDamaged(error)) throw error
    const task = yield* readTask(id, { ...view, artifacts: false })
    return task && { ...task, metadata: { ...task.metadata, error: error.message } }
  }
}

/** How many bytes of stored text a task of this list shows, at most. */
function bytesOf({ historyLength, artifacts = true }: TaskQuery): string {
  const shown = [
    ...(historyLength === 0 ? [] : ['octet_length(m.envelope)']),
    ...(artifacts ? ['coalesce(octet_length(m.reply), 0)'] : []),
  ]
  const status = 'coalesce(octet_length(t.status_message), 0)'
  if (shown.length === 0) return status
  return `${status} + coalesce((select sum(${shown.join(' + ')}) from messages m where ${messagesOfTask('m', 't.id')}), 0)`
}

interface SqlCondition {
  readonly where: string
  readonly values: Value[]
}

function conditions(query: TaskQuery): SqlCondition {
  const values: Value[] = [query.workspaceId]
  const where = ['t.workspace_id = $1']
  const add = (text: string, value: string | number | TaskState | undefined) => {
    if (value === undefined) return
    values.push(value)
    where.push(`${text} $${values.length}`)
  }
  if (query.principal !== undefined) {
    const own = principalCondition(query.principal, values.length + 1)
    where.push(own.where)
    values.push(...own.values)
  }
  add('t.context_id =', query.contextId)
  add('t.state =', query.state)
  add('t.updated_at >=', query.changedSinceMs)
  return { where: where.join(' and '), values }
}

function afterCursor(
  where: string,
  values: readonly Value[],
  after: { updatedAtMs: number; id: string },
): SqlCondition {
  const at = values.length
  return {
    // The first condition alone lets the index search start at the cursor.
    where: `${where} and t.updated_at <= $${at + 1} and (t.updated_at < $${at + 1} or t.id < $${at + 2})`,
    values: [...values, after.updatedAtMs, after.id],
  }
}
