/**
 * Schedules: a message that is sent to a workspace at times that a cron pattern names. The clock door (doors/clock) sends
 * them; here they are kept.
 * Invariant: a schedule advances in the transaction that admits its message, under a key of schedule and time. So a
 * crash sends no time twice and forgets none.
 */
import { MoleculeError } from '../errors.ts'
import { ulid } from '../ids.ts'
import { endPushesOfTasks } from '../inbox/push-ends.ts'
import { type Row, type Statement, type Store, sql, statement, type Transaction } from '../store/store.ts'
import { requireExisting } from './existing-workspace.ts'
import { ADMIN_TOKEN_ID } from './tokens.ts'

/** What happens to a time at which no platform ran: one message later, or none. */
export type MissedTimes = 'once' | 'skip'

export interface ScheduleDraft {
  readonly workspaceId: string
  readonly name: string
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron: string
  readonly timeZone: string
  readonly text: string
  readonly missed: MissedTimes
  /** True: all runs are one conversation, so the agent remembers the runs before. */
  readonly sameConversation: boolean
  readonly webhook?: ScheduleWebhook | undefined
  /** Where its answers go besides their tasks: a text that the chat door reads. Empty: to no chat. */
  readonly reportTo?: string | undefined
  /** The token that made it, or that resumed it last: when it ends, the schedule pauses. */
  readonly tokenId?: string | undefined
  /** The team whose file made the schedule (`molecule apply`). Only that team may prune it. */
  readonly team?: string | undefined
}

export interface ScheduleWebhook {
  readonly url: string
  readonly signingSecret: string
}

export interface Schedule extends ScheduleDraft {
  readonly id: string
  readonly paused: boolean
  /** Absent when no further time follows. */
  readonly nextAtMs?: number
  readonly lastAtMs?: number
  readonly lastTaskId?: string
  /** Why the last time was left out, or why the platform paused it. */
  readonly note?: string
}

export type ScheduleChange = Partial<Omit<ScheduleDraft, 'workspaceId' | 'webhook' | 'team' | 'tokenId'>> & {
  readonly paused?: boolean
}

export interface Schedules {
  /** Throws `invalid_request` for a pattern or a time zone that is not one. */
  create(draft: ScheduleDraft): Promise<Schedule>
  /** Throws `not_found`. */
  get(id: string): Promise<Schedule>
  /** A resumed schedule is the work of `tokenId` from now on. */
  change(id: string, change: ScheduleChange, tokenId?: string): Promise<Schedule>
  /** False if there is none. */
  remove(id: string): Promise<boolean>
  /** Those whose time has come, and when the next one comes. Pauses those whose token has expired. */
  due(nowMs: number): Promise<{ readonly due: Schedule[]; readonly nextAtMs: number | undefined }>
  /** The time that was due has no run; the note says why. A schedule that another node has advanced stays as it is. */
  leaveOut(schedule: Schedule, dueAtMs: number, note: string): Promise<void>
  /**
   * The write that records the run of a task, to be committed with its message: at the time that was due, which advances
   * the schedule like `leaveOut`, or without one outside of its times.
   */
  prepareRun(schedule: Schedule, dueAtMs?: number): Promise<(taskId: string) => Statement>
}

/** The id of the push config that the clock sets for the task of a run. */
export const SCHEDULE_PUSH_ID = 'schedule'

/** At the limit, `create` refuses a new one. */
export const SCHEDULES_MAX = 1000
const DUE_AT_ONCE = 100

export function createSchedules({ store, nowMs }: { readonly store: Store; readonly nowMs: () => number }): Schedules {
  return {
    async create(draft) {
      const nextAtMs = await firstTime(draft, nowMs())
      return store.write(() => insertSchedule(`sch_${ulid()}`, draft, nextAtMs))
    },
    get: (id) => store.read(() => requireSchedule(id)),
    async change(id, change, tokenId) {
      const known = await store.read(() => requireSchedule(id))
      const changed = { ...known, ...change }
      // A schedule that goes on after a pause has not missed the times between.
      const hasNewTimes = change.cron !== undefined || change.timeZone !== undefined
      const nextAtMs = await (hasNewTimes ? firstTime : nextTime)(changed, nowMs())
      const resumer = change.paused === false ? { tokenId } : undefined
      return store.write(() => updateSchedule(changed, { nextAtMs, resumer }))
    },
    remove: (id) => store.write(() => deleteSchedule(id)),
    async due(atMs) {
      const { due, expiredIds, nextAtMs } = await store.read(() => findDue(atMs))
      for (const id of expiredIds)
        await store.write(() => stopSchedules({ column: 'id', value: id }, 'the token that made it has expired'))
      return { due: due.filter(({ id }) => !expiredIds.includes(id)), nextAtMs }
    },
    async leaveOut(schedule, dueAtMs, note) {
      const nextAtMs = await nextTime(schedule, Math.max(nowMs(), dueAtMs))
      const set = 'update schedules set next_at = $3, note = $4 where id = $1 and next_at = $2'
      await store.write(() => sql(set, [schedule.id, dueAtMs, nextAtMs ?? null, note]))
    },
    async prepareRun(schedule, dueAtMs) {
      const { id } = schedule
      const ran = 'update schedules set last_task_id = $2, note = null'
      if (dueAtMs === undefined) return (taskId) => statement(`${ran}, last_at = now_ms() where id = $1`, [id, taskId])
      const nextAtMs = await nextTime(schedule, Math.max(nowMs(), dueAtMs))
      const advanced = `${ran}, last_at = $3, next_at = $4 where id = $1 and next_at = $3`
      return (taskId) => statement(advanced, [id, taskId, dueAtMs, nextAtMs ?? null])
    },
  }
}

type Times = Pick<ScheduleDraft, 'cron' | 'timeZone'>

/** The first time of new times. Refuses a date, which the library takes too, and times that never come, as 30 February. */
export async function firstTime(times: Times, afterMs: number): Promise<number> {
  const fields = fieldsOf(times.cron)
  if (fields.length !== CRON_FIELDS.length && !NICKNAME.test(times.cron)) {
    throw unusableTimes(times.cron, `it has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, not 5`)
  }
  const nextAtMs = await nextTime(times, afterMs)
  if (nextAtMs !== undefined) return nextAtMs
  const message = `the times "${times.cron}" never come: no date fits the pattern`
  throw new MoleculeError('invalid_request', message, { details: { path: 'cron' } })
}

/** The first time after `afterMs`; undefined if there is none. Loads the library only where schedules are used. */
export async function nextTime({ cron, timeZone }: Times, afterMs: number): Promise<number | undefined> {
  requireTimeZone(timeZone)
  const { Cron } = await import('croner')
  const parse = (pattern: string) => new Cron(pattern, { timezone: timeZone, mode: '5-part' })
  try {
    return parse(cron).nextRun(new Date(afterMs))?.getTime()
  } catch (cause) {
    throw unusableTimes(cron, wrongField(cron, parse), cause)
  }
}

const CRON_FIELDS = ['a minute', 'an hour', 'a day of the month', 'a month', 'a day of the week']
const CRON_ADVICE =
  'the fields are minute (0-59), hour (0-23), day of the month (1-31), month (1-12) and day of the week (0-7), such as "30 9 * * 1-5" or "*/10 * * * *"'
const NICKNAME = /^\s*@(yearly|annually|monthly|weekly|daily|midnight|hourly)\s*$/i

const fieldsOf = (cron: string): string[] => cron.trim().split(/\s+/)

/** Names the field as it was typed. The library counts days and months from 0 and says neither. */
function wrongField(cron: string, parse: (pattern: string) => unknown): string {
  const fields = fieldsOf(cron)
  const wrong = fields.findIndex((_, index) => {
    try {
      parse(fields.map((field, at) => (at === index ? field : '*')).join(' '))
      return false
    } catch {
      return true
    }
  })
  return wrong < 0 ? 'it is no pattern of times' : `${JSON.stringify(fields[wrong])} is not ${CRON_FIELDS[wrong]}`
}

const unusableTimes = (cron: string, problem: string, cause?: unknown): MoleculeError =>
  new MoleculeError('invalid_request', `the times "${cron}" cannot be used: ${problem}; ${CRON_ADVICE}`, {
    details: { path: 'cron' },
    cause,
  })

function requireTimeZone(timeZone: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone })
  } catch (cause) {
    const message = `there is no time zone ${JSON.stringify(timeZone)}; use a name such as UTC or Europe/Berlin`
    throw new MoleculeError('invalid_request', message, { details: { path: 'time_zone' }, cause })
  }
}

const COLUMNS = `id, workspace_id, name, cron, time_zone, text, missed, same_conversation, webhook, paused, next_at,
  last_at, last_task_id, note, team, token_id, report_to`

function* insertSchedule(id: string, draft: ScheduleDraft, nextAtMs: number | undefined): Transaction<Schedule> {
  const { workspaceId } = draft
  yield* requireToken(draft.tokenId)
  yield* requireExisting(workspaceId)
  const [count] = yield* sql<{ schedules: number }>('select count(*) as schedules from schedules')
  if (Number(count?.schedules) >= SCHEDULES_MAX) {
    throw new MoleculeError('unsupported_operation', `there are ${SCHEDULES_MAX} schedules: remove some first`)
  }
  const [row] = yield* sql(
    `insert into schedules (id, workspace_id, name, cron, time_zone, text, missed, same_conversation, webhook, next_at,
       team, token_id, report_to, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now_ms())
     on conflict (id) do update set name = excluded.name returning ${COLUMNS}`,
    [
      ...[id, workspaceId, draft.name, draft.cron, draft.timeZone, draft.text, draft.missed],
      ...[draft.sameConversation ? 1 : 0, draft.webhook === undefined ? null : JSON.stringify(draft.webhook)],
      ...[nextAtMs ?? null, draft.team ?? null, draft.tokenId ?? null, draft.reportTo || null],
    ],
  )
  return toSchedule(row as Row)
}

/** Prevents a schedule that nothing ends: another node may accept a revoked token for some seconds. */
function* requireToken(id: string | undefined): Transaction<void> {
  if (id === undefined || id === ADMIN_TOKEN_ID) return
  const [token] = yield* sql('select id from tokens where id = $1', [id])
  if (token === undefined) throw new MoleculeError('unauthenticated', 'the token was revoked')
}

function* requireSchedule(id: string): Transaction<Schedule> {
  const [row] = yield* sql(`select ${COLUMNS} from schedules where id = $1`, [id])
  if (row === undefined) throw new MoleculeError('not_found', `there is no schedule ${id}`)
  return toSchedule(row)
}

interface ScheduleUpdate {
  readonly nextAtMs: number | undefined
  /** Absent: the change does not resume the schedule, so one that the platform has paused meanwhile stays paused. */
  readonly resumer: { readonly tokenId: string | undefined } | undefined
}

/** Of a resumed schedule that the platform had paused. */
const WAS_STOPPED = 'stopped_at is not null and $10 = 1'

function* updateSchedule(schedule: Schedule, { nextAtMs, resumer }: ScheduleUpdate): Transaction<Schedule> {
  const { id, name, cron, timeZone, text, missed, sameConversation, paused, reportTo } = schedule
  yield* requireToken(resumer?.tokenId)
  const [row] = yield* sql(
    `update schedules set name = $2, cron = $3, time_zone = $4, text = $5, missed = $6, same_conversation = $7,
       paused = case when stopped_at is not null and $10 = 0 then 1 else $8 end, next_at = $9,
       token_id = case when $10 = 1 then $11 else token_id end, note = case when ${WAS_STOPPED} then null else note end,
       stopped_at = case when ${WAS_STOPPED} then null else stopped_at end, report_to = $12 where id = $1 returning ${COLUMNS}`,
    [
      ...[id, name, cron, timeZone, text, missed, sameConversation ? 1 : 0, paused ? 1 : 0, nextAtMs ?? null],
      ...[resumer === undefined ? 0 : 1, resumer?.tokenId ?? null, reportTo || null],
    ],
  )
  if (row === undefined) throw new MoleculeError('not_found', `there is no schedule ${id}`)
  return toSchedule(row)
}

function* deleteSchedule(id: string): Transaction<boolean> {
  return (yield* sql('delete from schedules where id = $1 returning id', [id])).length > 0
}

/** Pauses schedules whose token ended, and ends the webhooks of their last runs. The token's own tasks stay. */
export function* stopSchedules(
  { column, value }: { readonly column: 'id' | 'token_id'; readonly value: string },
  reason: string,
): Transaction<void> {
  const runs = yield* sql<{ task_id: string }>(
    `select last_task_id as task_id from schedules where ${column} = $1 and last_task_id is not null order by task_id`,
    [value],
  )
  const taskIds = runs.map(({ task_id: taskId }) => taskId)
  yield* endPushesOfTasks(taskIds, { id: SCHEDULE_PUSH_ID, reason })
  yield* sql(`update schedules set paused = 1, note = $2, stopped_at = now_ms() where ${column} = $1 and paused = 0`, [
    value,
    reason,
  ])
}

/** A browser log-in that is over ends nothing: its person logged out. */
const IS_EXPIRED = `(select count(*) from tokens t where t.id = token_id and t.kind = 'token' and t.expires_at <= now_ms())`

function* findDue(nowMs: number): Transaction<{ due: Schedule[]; expiredIds: string[]; nextAtMs: number | undefined }> {
  const rows = yield* sql(
    `select ${COLUMNS}, ${IS_EXPIRED} as expired from schedules where paused = 0 and next_at is not null order by next_at limit ${DUE_AT_ONCE + 1}`,
  )
  const all = rows.map(toSchedule)
  const due = all.filter(({ nextAtMs = 0 }) => nextAtMs <= nowMs)
  const expiredIds = rows.filter((row) => Number(row['expired']) > 0).map((row) => String(row['id']))
  return {
    due: due.slice(0, DUE_AT_ONCE),
    expiredIds,
    nextAtMs: all[due.length]?.nextAtMs ?? (due.length > 0 ? nowMs : undefined),
  }
}

function toSchedule(row: Row): Schedule {
  const text = (name: string) => String(row[name])
  const optional = <T>(name: string, read: (value: string) => T) => {
    const value = row[name]
    return value === null || value === undefined ? undefined : read(String(value))
  }
  const fields = {
    nextAtMs: optional('next_at', Number),
    lastAtMs: optional('last_at', Number),
    lastTaskId: optional('last_task_id', String),
    note: optional('note', String),
    team: optional('team', String),
    tokenId: optional('token_id', String),
    reportTo: optional('report_to', String),
    webhook: optional('webhook', (value) => JSON.parse(value) as ScheduleWebhook),
  }
  return {
    id: text('id'),
    workspaceId: text('workspace_id'),
    name: text('name'),
    cron: text('cron'),
    timeZone: text('time_zone'),
    text: text('text'),
    missed: text('missed') as MissedTimes,
    sameConversation: Number(row['same_conversation']) === 1,
    paused: Number(row['paused']) === 1,
    ...(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Schedule>),
  }
}

export const pauseEverySchedule = (): Statement => statement('update schedules set paused = 1')
