/** Schedules: messages that the clock sends to a workspace at times. */
import { z } from 'zod'
import { TASK_STATES } from '../protocol/a2a.ts'
import { endpoint, nothing } from './endpoint.ts'
import { nameSchema, shortTextSchema, URL_CHARACTERS_MAX } from './fields.ts'

const TEXT_CHARACTERS_MAX = 100_000
const CRON_CHARACTERS_MAX = 200
const ZONE_CHARACTERS_MAX = 60
/** A channel, and the id of a place or person. */
const REPORT_CHARACTERS_MAX = 150

const missedSchema = z.enum(['once', 'skip'])

const fields = {
  name: nameSchema,
  cron: z.string().trim().min(1).max(CRON_CHARACTERS_MAX),
  time_zone: z.string().max(ZONE_CHARACTERS_MAX),
  text: z.string().trim().min(1).max(TEXT_CHARACTERS_MAX),
  missed: missedSchema,
  same_conversation: z.boolean(),
  report_to: z
    .string()
    .trim()
    .max(REPORT_CHARACTERS_MAX)
    .describe(
      'Where the answers go besides their tasks: "owners" (the home chats of the owners), "<channel>/<place>" or "<channel>/@<person>"; empty: to no chat.',
    ),
}

export const newScheduleSchema = z.strictObject({
  cron: fields.cron,
  text: fields.text,
  name: fields.name.optional(),
  time_zone: fields.time_zone.default('UTC'),
  missed: fields.missed.default('skip'),
  same_conversation: fields.same_conversation.default(false),
  webhook: z.url().max(URL_CHARACTERS_MAX).optional(),
  report_to: fields.report_to.default(''),
  team: shortTextSchema.optional(),
})

const scheduleSchema = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  name: z.string(),
  cron: z.string(),
  time_zone: z.string(),
  text: z.string(),
  missed: missedSchema.describe('What happens to times at which no platform ran: one message later, or none.'),
  same_conversation: z.boolean(),
  report_to: z.string().describe('As it was given; empty: to no chat.'),
  webhook: z.string().nullable().describe('Null also for a viewer, because an address often has a key in it.'),
  team: z.string().nullable().describe('The team whose file made the schedule.'),
  paused: z.boolean(),
  next_at: z.string().nullable().describe('Null when it is paused, or when no further time follows.'),
  note: z.string().nullable().describe('Why the last time was left out, or why the platform paused it.'),
  last: z
    .strictObject({
      at: z.string().nullable(),
      task_id: z.string(),
      state: z.enum(TASK_STATES).nullable().describe('Null when the task is no longer stored.'),
      text: z.string().describe('The first words of the answer.'),
    })
    .nullable()
    .describe('Null before the first run.'),
})

export const createSchedule = endpoint('POST /workspaces/{id}/schedules', {
  access: 'schedule.handle',
  body: { schema: newScheduleSchema, name: 'a schedule' },
  summary: 'Send a message at times; `webhook` receives the answers, signed with the secret of this answer',
  success: [201, 'The schedule, and the secret of its webhook'],
  answer: scheduleSchema.extend({ webhook_secret: z.string().optional() }),
})

export const listSchedules = endpoint('GET /schedules', {
  access: 'schedule.read',
  summary: 'The schedules of all workspaces, or of the one that `workspace` names; `after` reads the next page',
  query: z.object({ workspace: z.string().optional().describe('Its id.'), after: z.string().optional() }),
  success: [200, 'The schedules with their last results, and `next` where there are more'],
  answer: z.strictObject({ schedules: z.array(scheduleSchema), next: z.string().optional() }),
})

export const changeSchedule = endpoint('PATCH /schedules/{schedule}', {
  access: 'schedule.handle',
  body: {
    schema: z.strictObject({ ...fields, paused: z.boolean() }).partial(),
    name: 'a change of a schedule',
  },
  summary: 'Change, pause or resume a schedule',
  success: [200, 'The schedule'],
  answer: scheduleSchema,
})

export const runSchedule = endpoint('POST /schedules/{schedule}/run', {
  access: 'schedule.handle',
  summary: 'Send the message now; refused while the last run works',
  success: [202, 'The id of the task'],
  answer: z.strictObject({ task_id: z.string() }),
})

export const deleteSchedule = endpoint('DELETE /schedules/{schedule}', {
  access: 'schedule.handle',
  summary: 'Delete a schedule; its tasks stay',
  success: [204, 'It is deleted'],
  answer: nothing,
})

export const scheduleEndpoints = [createSchedule, listSchedules, changeSchedule, runSchedule, deleteSchedule] as const
