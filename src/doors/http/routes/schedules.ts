/** Schedules over HTTP: messages that the clock sends to a workspace at times. Admins and members change them. */
import { changeSchedule, createSchedule, deleteSchedule, listSchedules, runSchedule } from '../../../api/schedules.ts'
import { MoleculeError } from '../../../errors.ts'
import { readSchedule, readSchedules, type ScheduleReader } from '../../../views/schedules.ts'
import { seesConfig } from '../../../workspaces/may-talk.ts'
import type { ScheduleChange } from '../../../workspaces/schedules.ts'
import { grantOf, type Identity } from '../../../workspaces/tokens.ts'
import { readReportTarget } from '../../chat/homes/report-to.ts'
import { newSigningSecret, requirePush } from '../a2a/push-methods.ts'
import { type AppContext, serve } from './route.ts'

export const scheduleRoutes = [
  serve(createSchedule, async ({ params, identity, body }, app) => {
    const { webhook: url, name = firstLine(body.text), time_zone, same_conversation, report_to, ...rest } = body
    await requireReportTarget(report_to, app.chat)
    if (url !== undefined) await requirePush(app.push).check(url)
    const webhook = url === undefined ? undefined : { url, signingSecret: newSigningSecret() }
    const { tokenId } = grantOf(identity)
    const named = { timeZone: time_zone, sameConversation: same_conversation, reportTo: report_to }
    const draft = { ...rest, ...named, name, webhook, tokenId }
    const { id } = await app.schedules.create({ workspaceId: params.id, ...draft })
    app.clockDoor.wake()
    return { ...(await readSchedule(app.store, id, readerOf(identity))), webhook_secret: webhook?.signingSecret }
  }),
  serve(listSchedules, async ({ query: { workspace: workspaceId, after }, identity }, { store }) =>
    readSchedules(store, { workspaceId, after }, readerOf(identity)),
  ),
  serve(changeSchedule, async ({ params, identity, body }, app) => {
    const { time_zone: timeZone, same_conversation: sameConversation, report_to: reportTo, ...rest } = body
    await requireReportTarget(reportTo, app.chat)
    const given = Object.entries({ ...rest, timeZone, sameConversation, reportTo }).filter(
      ([, value]) => value !== undefined,
    )
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

/** Throws `invalid_request` for a text of another form, or a channel that does not exist. */
async function requireReportTarget(text: string | undefined, { channels }: AppContext['chat']): Promise<void> {
  if (text === undefined || text === '') return
  const target = readReportTarget(text)
  if (target.type === 'owners' || (await channels.list()).some(({ name }) => name === target.channel)) return
  const message = `there is no channel ${JSON.stringify(target.channel)}: molecule channel list shows them`
  throw new MoleculeError('invalid_request', message, { details: { path: 'report_to' } })
}

const NAME_CHARACTERS_MAX = 60

/** A name for people. Control characters would make it refused. */
const firstLine = (text: string): string =>
  (text.split('\n')[0] ?? '').replace(/[\p{C}]/gu, '').slice(0, NAME_CHARACTERS_MAX) || 'schedule'

const readerOf = (identity: Identity): ScheduleReader => ({ seesWebhooks: seesConfig(identity) })
