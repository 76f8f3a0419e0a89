/**
 * Lists of tasks, the last changed first, in pages of bounded rows and bytes. A cursor names a task, so that no page
 * repeats one. A list costs the same however many tasks a workspace has: a page looks at a bounded number of tasks.
 */
import type { Task } from '../../protocol/a2a.ts'
import { isReplyDamaged } from '../../protocol/stored-reply.ts'
import { PAGE_BYTES_MAX } from '../../store/page-budget.ts'
import { sql, type Transaction, type Value } from '../../store/store.ts'
import type { TaskPage, TaskQuery, TaskView } from '../reception.ts'
import { messagesOfTask } from '../rows/task-messages.ts'
import { principalCondition } from './principals.ts'
import { readTask } from './tasks.ts'

/**
 * Tasks that are counted, and tasks that one page looks at for those that match. A larger workspace has "10,000" as its
 * total, and a page may have fewer tasks than asked for, or none, and a next one.
 */
const TASKS_SCANNED_MAX = 10_000

export function* listTasks(query: TaskQuery): Transaction<TaskPage> {
  const scan = scanned(query)
  const total = yield* countTasks(query, scan)
  const from = query.after === undefined ? scan : afterCursor(scan, query.after)
  const filter = filters(query, from.values)
  const endMs = filter.where === '' ? undefined : yield* endOfScan(from)
  const until = endMs === undefined ? filter : withEnd(filter, endMs)
  // One more than the page, to know whether there is a next one.
  const rows = yield* sql<{ id: string; updated_at: number; fits: number }>(
    `select id, updated_at, case when bytes_through <= ${PAGE_BYTES_MAX} or bytes_through = bytes then 1 else 0 end as fits
     from (select p.*, sum(p.bytes) over (order by p.updated_at desc, p.id desc rows unbounded preceding) as bytes_through
       from (select t.id, t.updated_at, ${bytesOf(query)} as bytes from tasks t where ${from.where}${until.where}
         order by t.updated_at desc, t.id desc limit ${query.limit + 1}) p) b
     order by updated_at desc, id desc`,
    until.values,
  )
  const page = rows.slice(0, query.limit).filter(({ fits }) => fits === 1)
  const tasks: Task[] = []
  const { historyLength, artifacts = true, detail = false } = query
  const view = { artifacts, detail, historyLength }
  for (const { id } of page) {
    const task = yield* readListedTask(id, view)
    if (task !== undefined) tasks.push(task)
  }
  const last = rows.length > page.length ? page.at(-1) : undefined
  const next = last === undefined ? cursorAt(endMs) : { updatedAtMs: last.updated_at, id: last.id }
  return { tasks, total, next }
}

/** A damaged reply fails its own task alone: the list shows that task without artifacts, and why. */
export function* readListedTask(id: string, view: TaskView): Transaction<Task | undefined> {
  try {
    return yield* readTask(id, view)
  } catch (error) {
    if (!isReplyDamaged(error)) throw error
    const task = yield* readTask(id, { ...view, artifacts: false })
    return task && { ...task, metadata: { ...task.metadata, error: error.message } }
  }
}

/** How many of the last changed tasks match. */
function* countTasks(query: TaskQuery, scan: SqlCondition): Transaction<number> {
  const filter = filters(query, scan.values)
  const columns = filter.where === '' ? '1' : 't.principal, t.context_id, t.state'
  const [count] = yield* sql<{ total: number }>(
    `select count(*) as total from (select ${columns} from tasks t where ${scan.where}
       order by t.updated_at desc limit ${TASKS_SCANNED_MAX}) t where 1 = 1${filter.where}`,
    filter.values,
  )
  return count?.total ?? 0
}

/** Where a page stops looking for tasks that match; undefined when it can look at all. */
function* endOfScan({ where, values }: SqlCondition): Transaction<number | undefined> {
  const [end] = yield* sql<{ updated_at: number }>(
    `select t.updated_at from tasks t where ${where} order by t.updated_at desc limit 1 offset ${TASKS_SCANNED_MAX}`,
    values,
  )
  return end?.updated_at
}

/** The page looks at every task of the millisecond in which it ends, so that its cursor can name that millisecond. */
const withEnd = ({ where, values }: SqlCondition, endMs: number): SqlCondition => ({
  where: `${where} and t.updated_at >= $${values.length + 1}`,
  values: [...values, endMs],
})

/** Before all ids. */
const FIRST_ID = '0'

const cursorAt = (endMs: number | undefined): TaskPage['next'] =>
  endMs === undefined ? undefined : { updatedAtMs: endMs, id: FIRST_ID }

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
  readonly values: readonly Value[]
}

/** The tasks of a workspace and a time: what the index of tasks finds in the order of the list. */
function scanned({ workspaceId, changedSinceMs }: TaskQuery): SqlCondition {
  if (changedSinceMs === undefined) return { where: 't.workspace_id = $1', values: [workspaceId] }
  return { where: 't.workspace_id = $1 and t.updated_at >= $2', values: [workspaceId, changedSinceMs] }
}

/** The other conditions, each with `and` before it; their parameters follow the given ones. */
function filters(query: TaskQuery, given: readonly Value[]): SqlCondition {
  const values = [...given]
  let where = ''
  if (query.principal !== undefined) {
    const own = principalCondition(query.principal, values.length + 1)
    where += ` and ${own.where}`
    values.push(...own.values)
  }
  const add = (column: string, value: string | undefined) => {
    if (value === undefined) return
    values.push(value)
    where += ` and ${column} = $${values.length}`
  }
  add('t.context_id', query.contextId)
  add('t.state', query.state)
  return { where, values }
}

function afterCursor({ where, values }: SqlCondition, after: { updatedAtMs: number; id: string }): SqlCondition {
  const at = values.length
  return {
    // The first condition alone lets the index search start at the cursor.
    where: `${where} and t.updated_at <= $${at + 1} and (t.updated_at < $${at + 1} or t.id < $${at + 2})`,
    values: [...values, after.updatedAtMs, after.id],
  }
}
