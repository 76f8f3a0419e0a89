/** Schedules as people see them, with the beginning of the answer to the last run. */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import { readListedTask } from '../inbox/read/task-list.ts'
import { textOf } from '../protocol/part.ts'
import { withinPage } from '../store/page-budget.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import type { ScheduleWebhook } from '../workspaces/schedules.ts'
import { instantOf } from './instant.ts'

export interface ScheduleQuery {
  readonly workspaceId?: string | undefined
  /** The id of the last schedule of the page before. */
  readonly after?: string | undefined
}

export interface ScheduleReader {
  /** The address of a webhook often has a key in it, so a viewer does not see it. */
  readonly seesWebhooks: boolean
}

type SchedulesAnswer = ApiAnswer<'GET /schedules'>
type ScheduleAnswer = SchedulesAnswer['schedules'][number]

/** Of a page. It shows the last answer of each, so a page of a thousand would read a thousand answers. */
const LISTED_AT_ONCE = 30
/** Of the last answer. */
const ANSWER_CHARACTERS_MAX = 200
/** A larger answer is not read: its task has it. */
const ANSWER_BYTES_MAX = 32 * 1024

interface ScheduleRow {
  id: string
  workspace_id: string
  name: string
  cron: string
  time_zone: string
  text: string
  missed: ScheduleAnswer['missed']
  same_conversation: number
  report_to: string
  webhook: string | null
  team: string | null
  paused: number
  next_at: number | null
  note: string | null
  last_at: number | null
  last_task_id: string | null
}

const SELECT = `select id, workspace_id, name, cron, time_zone, text, missed, same_conversation, coalesce(report_to, '') as report_to, webhook, team, paused,
  next_at, note, last_at, last_task_id from schedules`

/** A page, oldest first; of one workspace or of all. It ends at 30 schedules or at 1 MiB of text. */
export async function readSchedules(
  store: ReadStore,
  query: ScheduleQuery,
  reader: ScheduleReader,
): Promise<SchedulesAnswer> {
  const { rows, next } = await store.read(() => page(query))
  const schedules: ScheduleAnswer[] = []
  // One after the other: a page that is read at once holds all its answers in memory.
  for (const row of rows) schedules.push(await store.read(() => schedule(row, reader)))
  return { schedules, next }
}

/** Throws `not_found`. */
export const readSchedule = (store: ReadStore, id: string, reader: ScheduleReader): Promise<ScheduleAnswer> =>
  store.read(function* () {
    const [row] = yield* sql<ScheduleRow>(`${SELECT} where id = $1`, [id])
    if (row === undefined) throw new MoleculeError('not_found', `there is no schedule ${id}`)
    return yield* schedule(row, reader)
  })

/** The keys of a page. */
const keysOf = (condition: string): string =>
  `select id, octet_length(text) as bytes from schedules where id > $1 ${condition} order by id limit ${LISTED_AT_ONCE}`

const pageOf = (condition: string): string =>
  `${SELECT} where id in (select k.id from (${withinPage(keysOf(condition), 'p.id')}) k) order by id`

const [PAGE, PAGE_OF_WORKSPACE] = [pageOf(''), pageOf('and workspace_id = $2')]

function* page({
  workspaceId,
  after = '',
}: ScheduleQuery): Transaction<{ rows: ScheduleRow[]; next: string | undefined }> {
  const rows =
    workspaceId === undefined
      ? yield* sql<ScheduleRow>(PAGE, [after])
      : yield* sql<ScheduleRow>(PAGE_OF_WORKSPACE, [after, workspaceId])
  const last = rows.at(-1)?.id
  if (last === undefined) return { rows, next: undefined }
  const [later] = yield* sql("select id from schedules where id > $1 and ($2 = '' or workspace_id = $2) limit 1", [
    ...[last, workspaceId ?? ''],
  ])
  return { rows, next: later === undefined ? undefined : last }
}

function* schedule(row: ScheduleRow, { seesWebhooks }: ScheduleReader): Transaction<ScheduleAnswer> {
  const { same_conversation, webhook, paused, next_at, last_at, last_task_id, ...fields } = row
  const isPaused = paused === 1
  return {
    ...fields,
    same_conversation: same_conversation === 1,
    webhook: seesWebhooks && webhook !== null ? (JSON.parse(webhook) as ScheduleWebhook).url : null,
    paused: isPaused,
    next_at: (!isPaused && instantOf(next_at)) || null,
    last: last_task_id === null ? null : yield* lastRun(last_task_id, last_at),
  }
}

function* lastRun(taskId: string, atMs: number | null): Transaction<ScheduleAnswer['last']> {
  const task = yield* readListedTask(taskId, { historyLength: 0, replyBytesMax: ANSWER_BYTES_MAX })
  const answer = [...(task?.artifacts ?? []), ...(task?.status.message === undefined ? [] : [task.status.message])]
  const text = textOf(answer.flatMap(({ parts }) => parts))
  return {
    at: instantOf(atMs) ?? null,
    task_id: taskId,
    state: task?.status.state ?? null,
    text: text.slice(0, ANSWER_CHARACTERS_MAX),
  }
}
