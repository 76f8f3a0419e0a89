/** Schedules over HTTP: messages that the clock sends to a workspace at times. Admins and members change them. */
import type { z } from 'zod'
import {
  changeSchedule,
  createSchedule,
  deleteSchedule,
  listSchedules,
  runSchedule,
  type scheduleSchema,
} from '../../../api/schedules.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Task } from '../../../protocol/a2a.ts'
import { textOf } from '../../../protocol/part.ts'
import type { Schedule, ScheduleChange } from '../../../workspaces/schedules.ts'
import { grantOf, type Identity } from '../../../workspaces/tokens.ts'
import { newSigningSecret, requirePush } from '../a2a/push-methods.ts'
import { seesConfig } from '../server/reach.ts'
import { type AppContext, serve } from './route.ts'

/** Of the last answer, in a list. */
const ANSWER_CHARACTERS_MAX = 200
/** A larger answer is not read for a list: its task has it. */
const ANSWER_BYTES_MAX = 32 * 1024

type ScheduleView = z.output<typeof scheduleSchema>

export const scheduleRoutes = [
  serve(createSchedule, async ({ params, identity, body }, app) => {
    const { webhook: url, name = firstLine(body.text), time_zone, same_conversation, ...rest } = body
    if (url !== undefined) await requirePush(app.push).check(url)
    const webhook = url === undefined ? undefined : { url, signingSecret: newSigningSecret() }
    const { tokenId } = grantOf(identity)
    const draft = { ...rest, name, webhook, tokenId, timeZone: time_zone, sameConversation: same_conversation }
    const schedule = await app.schedules.create({ workspaceId: params.id, ...draft })
    app.clockDoor.wake()
    return { ...(await viewSchedule(schedule, identity, app)), webhook_secret: webhook?.signingSecret }
  }),
  serve(listSchedules, async ({ query: { workspace: workspaceId, after }, identity }, app) => {
    const { schedules, next } = await app.schedules.list({ workspaceId, after })
    const shown: ScheduleView[] = []
    // One after the other: a page that is read at once holds all its answers in memory.
    for (const schedule of schedules) shown.push(await viewSchedule(schedule, identity, app))
    return { schedules: shown, next }
  }),
  serve(changeSchedule, async ({ params, identity, body }, app) => {
    const { time_zone: timeZone, same_conversation: sameConversation, ...rest } = body
    const given = Object.entries({ ...rest, timeZone, sameConversation }).filter(([, value]) => value !== undefined)
    const change = Object.fromEntries(given) as ScheduleChange
    const schedule = await app.schedules.change(params.schedule, change, grantOf(identity).tokenId)
    app.clockDoor.wake()
    return await viewSchedule(schedule, identity, app)
  }),
  serve(runSchedule, async ({ params }, { schedules, clockDoor }) => ({
    task_id: await clockDoor.run(await schedules.get(params.schedule)),
  })),
  serve(deleteSchedule, async ({ params }, { schedules }) => {
    const { id } = await schedules.get(params.schedule)
    await schedules.remove(id)
  }),
]

const NAME_CHARACTERS_MAX = 60

/** A name for people. Control characters would make it refused. */
const firstLine = (text: string): string =>
  (text.split('\n')[0] ?? '').replace(/[\p{C}]/gu, '').slice(0, NAME_CHARACTERS_MAX) || 'schedule'

const instant = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

const LAST_ANSWER = { historyLength: 0, replyBytesMax: ANSWER_BYTES_MAX }

/** A damaged reply must not take the whole list with it: its task is shown without the answer. */
async function readLastTask(reception: AppContext['reception'], taskId: string): Promise<Task | undefined> {
  try {
    return await reception.task(taskId, LAST_ANSWER)
  } catch (error) {
    if (!(error instanceof MoleculeError && error.code === 'reply_damaged')) throw error
    return await reception.task(taskId, { ...LAST_ANSWER, artifacts: false })
  }
}

/** The address of a webhook often has a key in it, so a viewer does not see it. */
async function viewSchedule(
  schedule: Schedule,
  identity: Identity,
  { reception }: Pick<AppContext, 'reception'>,
): Promise<ScheduleView> {
  const { lastTaskId } = schedule
  const task = lastTaskId === undefined ? undefined : await readLastTask(reception, lastTaskId)
  const answer = [...(task?.artifacts ?? []), ...(task?.status.message === undefined ? [] : [task.status.message])]
  const text = textOf(answer.flatMap(({ parts }) => parts))
  return {
    id: schedule.id,
    workspace_id: schedule.workspaceId,
    name: schedule.name,
    cron: schedule.cron,
    time_zone: schedule.timeZone,
    text: schedule.text,
    missed: schedule.missed,
    same_conversation: schedule.sameConversation,
    webhook: (seesConfig(identity) && schedule.webhook?.url) || null,
    team: schedule.team ?? null,
    paused: schedule.paused,
    next_at: schedule.paused ? null : instant(schedule.nextAtMs),
    note: schedule.note ?? null,
    last:
      lastTaskId === undefined
        ? null
        : {
            at: instant(schedule.lastAtMs),
            task_id: lastTaskId,
            state: task?.status.state ?? null,
            text: text.slice(0, ANSWER_CHARACTERS_MAX),
          },
  }
}
