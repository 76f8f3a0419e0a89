/** Schedules over HTTP: messages that the clock sends to a workspace at times. Admins and members change them. */
import { changeSchedule, createSchedule, deleteSchedule, listSchedules, runSchedule } from '../../../api/schedules.ts'
import { readSchedule, readSchedules, type ScheduleReader } from '../../../views/schedules.ts'
import { seesConfig } from '../../../workspaces/may-talk.ts'
import type { ScheduleChange } from '../../../workspaces/schedules.ts'
import { grantOf, type Identity } from '../../../workspaces/tokens.ts'
import { newSigningSecret, requirePush } from '../a2a/push-methods.ts'
import { serve } from './route.ts'

export const scheduleRoutes = [
  serve(createSchedule, async ({ params, identity, body }, app) => {
    const { webhook: url, name = firstLine(body.text), time_zone, same_conversation, ...rest } = body
    if (url !== undefined) await requirePush(app.push).check(url)
    const webhook = url === undefined ? undefined : { url, signingSecret: newSigningSecret() }
    const { tokenId } = grantOf(identity)
    const draft = { ...rest, name, webhook, tokenId, timeZone: time_zone, sameConversation: same_conversation }
    const { id } = await app.schedules.create({ workspaceId: params.id, ...draft })
    app.clockDoor.wake()
    return { ...(await readSchedule(app.store, id, readerOf(identity))), webhook_secret: webhook?.signingSecret }
  }),
  serve(listSchedules, async ({ query: { workspace: workspaceId, after }, identity }, { store }) =>
    readSchedules(store, { workspaceId, after }, readerOf(identity)),
  ),
  serve(changeSchedule, async ({ params, identity, body }, app) => {
    const { time_zone: timeZone, same_conversation: sameConversation, ...rest } = body
    const given = Object.entries({ ...rest, timeZone, sameConversation }).filter(([, value]) => value !== undefined)
    const change = Object.fromEntries(given) as ScheduleChange
    const { id } = await app.schedules.change(params.schedule, change, grantOf(identity).tokenId)
    app.clockDoor.wake()
    return await readSchedule(app.store, id, readerOf(identity))
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

const readerOf = (identity: Identity): ScheduleReader => ({ seesWebhooks: seesConfig(identity) })
