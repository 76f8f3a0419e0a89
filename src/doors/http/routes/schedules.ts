/** Schedules over HTTP: messages that the clock sends to a workspace at times. Admins and members change them. */
import { z } from 'zod'
import { newWorkspaceSchema } from '../../../api/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'
import type { Task } from '../../../protocol/a2a.ts'
import type { Schedule, ScheduleChange } from '../../../workspaces/schedules.ts'
import { grantOf, type Identity } from '../../../workspaces/tokens.ts'
import { newSigningSecret, requirePush } from '../a2a/push-methods.ts'
import { seesConfig } from '../server/reach.ts'
import { type AppContext, route } from './route.ts'

const TEXT_CHARACTERS_MAX = 100_000
const CRON_CHARACTERS_MAX = 200
const ZONE_CHARACTERS_MAX = 60
const URL_CHARACTERS_MAX = 2000
/** Of the last answer, in a list. */
const ANSWER_CHARACTERS_MAX = 200
/** A larger answer is not read for a list: its task has it. */
const ANSWER_BYTES_MAX = 32 * 1024

const fields = {
  name: newWorkspaceSchema.shape.name,
  cron: z.string().trim().min(1).max(CRON_CHARACTERS_MAX),
  time_zone: z.string().max(ZONE_CHARACTERS_MAX),
  text: z.string().trim().min(1).max(TEXT_CHARACTERS_MAX),
  missed: z.enum(['once', 'skip']),
  same_conversation: z.boolean(),
}
export const newScheduleSchema = z.strictObject({
  cron: fields.cron,
  text: fields.text,
  name: fields.name.optional(),
  time_zone: fields.time_zone.default('UTC'),
  missed: fields.missed.default('skip'),
  same_conversation: fields.same_conversation.default(false),
  webhook: z.url().max(URL_CHARACTERS_MAX).optional(),
  team: newWorkspaceSchema.shape.team,
})
const changeSchema = z.strictObject({ ...fields, paused: z.boolean() }).partial()

export const scheduleRoutes = [
  route({
    method: 'post',
    path: '/workspaces/:id/schedules',
    access: 'schedule.handle',
    body: { schema: newScheduleSchema, name: 'a schedule' },
    summary: 'Send a message at times; `webhook` receives the answers, signed with the secret of this answer',
    success: [201, 'The schedule, and the secret of its webhook'],
    async handle({ context, identity, body }, app) {
      const { webhook: url, name = firstLine(body.text), time_zone, same_conversation, ...rest } = body
      if (url !== undefined) await requirePush(app.push).check(url)
      const webhook = url === undefined ? undefined : { url, signingSecret: newSigningSecret() }
      const { tokenId } = grantOf(identity)
      const draft = { ...rest, name, webhook, tokenId, timeZone: time_zone, sameConversation: same_conversation }
      const schedule = await app.schedules.create({ workspaceId: context.req.param('id'), ...draft })
      app.clockDoor.wake()
      const secret = webhook === undefined ? {} : { webhook_secret: webhook.signingSecret }
      return context.json({ ...(await viewSchedule(schedule, identity, app)), ...secret }, 201)
    },
  }),
  route({
    method: 'get',
    path: '/schedules',
    access: 'schedule.read',
    summary: 'The schedules of all workspaces, or of the one that `workspace` names; `after` reads the next page',
    success: [200, 'The schedules with their last results, and `next` where there are more'],
    async handle({ context, identity }, app) {
      const { workspace: workspaceId, after } = context.req.query()
      const { schedules, next } = await app.schedules.list({ workspaceId, after })
      const shown: Awaited<ReturnType<typeof viewSchedule>>[] = []
      // One after the other: a page that is read at once holds all its answers in memory.
      for (const schedule of schedules) shown.push(await viewSchedule(schedule, identity, app))
      return context.json({ schedules: shown, ...(next !== undefined && { next }) })
    },
  }),
  route({
    method: 'patch',
    path: '/schedules/:schedule',
    access: 'schedule.handle',
    body: { schema: changeSchema, name: 'a change of a schedule' },
    summary: 'Change, pause or resume a schedule',
    success: [200, 'The schedule'],
    async handle({ context, identity, body }, app) {
      const { time_zone: timeZone, same_conversation: sameConversation, ...rest } = body
      const given = Object.entries({ ...rest, timeZone, sameConversation }).filter(([, value]) => value !== undefined)
      const change = Object.fromEntries(given) as ScheduleChange
      const schedule = await app.schedules.change(context.req.param('schedule'), change, grantOf(identity).tokenId)
      app.clockDoor.wake()
      return context.json(await viewSchedule(schedule, identity, app))
    },
  }),
  route({
    method: 'post',
    path: '/schedules/:schedule/run',
    access: 'schedule.handle',
    summary: 'Send the message now; refused while the last run works',
    success: [202, 'The id of the task'],
    async handle({ context }, { schedules, clockDoor }) {
      const taskId = await clockDoor.run(await schedules.get(context.req.param('schedule')))
      return context.json({ task_id: taskId }, 202)
    },
  }),
  route({
    method: 'delete',
    path: '/schedules/:schedule',
    access: 'schedule.handle',
    summary: 'Delete a schedule; its tasks stay',
    success: [204, 'It is deleted'],
    async handle({ context }, { schedules }) {
      const { id } = await schedules.get(context.req.param('schedule'))
      await schedules.remove(id)
      return context.body(null, 204)
    },
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
async function viewSchedule(schedule: Schedule, identity: Identity, { reception }: Pick<AppContext, 'reception'>) {
  const { lastTaskId } = schedule
  const task = lastTaskId === undefined ? undefined : await readLastTask(reception, lastTaskId)
  const answer = [...(task?.artifacts ?? []), ...(task?.status.message === undefined ? [] : [task.status.message])]
  const text = answer.flatMap(({ parts }) => parts.map((part) => part.text ?? '')).join('')
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
