/** Lists of tasks, the last changed first, in pages. A cursor names a task, so that no page repeats one. */
import type { Task, TaskState } from '../../protocol/a2a.ts'
import { sql, type Transaction, type Value } from '../../store/store.ts'
import type { TaskPage, TaskQuery } from '../inbox.ts'
import { readTask } from './tasks.ts'

export function* listTasks(query: TaskQuery): Transaction<TaskPage> {
  const { where, values } = conditions(query)
  const [count] = yield* sql<{ total: number }>(`select count(*) as total from tasks where ${where}`, values)
  const from = query.after === undefined ? { where, values } : afterCursor(where, values, query.after)
  const rows = yield* sql<{ id: string; updated_at: number }>(
    `select id, updated_at from tasks where ${from.where} order by updated_at desc, id desc limit ${query.limit + 1}`,
    from.values,
  )
  const page = rows.slice(0, query.limit)
  const tasks: Task[] = []
  const { historyLength, detail = false } = query
  const view = historyLength === undefined ? { detail } : { historyLength, detail }
  for (const { id } of page) {
    const task = yield* readTask(id, view)
    if (task !== undefined) tasks.push(task)
  }
  const last = rows.length > query.limit ? page.at(-1) : undefined
  return { tasks, total: count?.total ?? 0, ...(last && { next: { updatedAtMs: last.updated_at, id: last.id } }) }
}

interface SqlCondition {
  readonly where: string
  readonly values: Value[]
}

function conditions(query: TaskQuery): SqlCondition {
  const values: Value[] = [query.workspaceId]
  const where = ['workspace_id = $1']
  const add = (text: string, value: string | number | TaskState | undefined) => {
    if (value === undefined) return
    values.push(value)
    where.push(`${text} $${values.length}`)
  }
  add('principal =', query.principal)
  add('context_id =', query.contextId)
  add('state =', query.state)
  add('updated_at >=', query.changedSinceMs)
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
    where: `${where} and updated_at <= $${at + 1} and (updated_at < $${at + 1} or id < $${at + 2})`,
    values: [...values, after.updatedAtMs, after.id],
  }
}
