/** `molecule schedule`: add, list, pause, resume, run, remove. */
import type { PlatformClient } from '../../../client/platform-client.ts'
import type { ScheduleView } from '../../../client/views.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import { withoutControls } from '../../../printable.ts'
import { taskStateText } from '../../../protocol/a2a.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { resolveWorkspaceId } from '../../platform/platform-access.ts'
import type { Column } from '../../terminal/output.ts'

interface AddFlags {
  readonly timeZone?: string
  /** The platform refuses any other text. */
  readonly missed?: 'once' | 'skip'
  readonly name?: string
  readonly webhook?: string
  readonly sameConversation?: true
  readonly reportTo?: string
}

export const define: DefineCommand = (command, openContext) => {
  command
    .command('add')
    .description('send a message at the times of a cron pattern')
    .argument('<workspace>', 'id or name')
    .argument('<cron>', 'minute, hour, day of the month, month, day of the week: "30 9 * * 1-5"')
    .argument('<text...>', 'the message')
    .option('--time-zone <name>', 'for example Europe/Berlin; the zone of this machine without it')
    .option('--missed <once|skip>', 'what happens to times at which no platform ran (skip)')
    .option('--name <name>', 'a name for lists; the first line of the message without it')
    .option('--webhook <url>', 'where the answers go; they also stay in the tasks of the workspace')
    .option(
      '--report-to <chat>',
      'a chat that the answers go to: owners (their home chats), <channel>/<place> or <channel>/@<person>',
    )
    .option('--same-conversation', 'all runs are one conversation: the agent remembers the runs before')
    .action(async (workspace: string, cron: string, ...[text, flags]: [string[], AddFlags]) =>
      add(await openContext(), { workspace, cron, text: text.join(' '), flags }),
    )
  command
    .command('list', { isDefault: true })
    .description('list the schedules of one workspace, or of all, with their last results')
    .argument('[workspace]', 'id or name')
    .action(async (workspace: string | undefined) => list(await openContext(), workspace))
  for (const [name, description, run] of [
    ['pause', 'send nothing until "resume"', pauseWith(true)],
    ['resume', 'send again, from the next time on', pauseWith(false)],
    ['run', 'send the message now', runNow],
    ['remove', 'delete it; its tasks stay', remove],
  ] as const) {
    command
      .command(name)
      .description(description)
      .argument('<id>', 'the id that "molecule schedule" shows')
      .action(async (id: string) => {
        const { platform, show } = await openContext()
        const result = await run(platform(), id)
        await show(
          { id, done: name, ...result },
          () => `${DONE[name]} ${id}${result ? `: task ${result.task_id}` : ''}\n`,
        )
      })
  }
}

const DONE = { pause: 'paused', resume: 'resumed', run: 'sent', remove: 'removed' } as const

const pauseWith = (paused: boolean) => async (platform: PlatformClient, schedule: string) => {
  await platform.call('PATCH /schedules/{schedule}', { schedule, body: { paused } })
}

const runNow = (platform: PlatformClient, schedule: string) =>
  platform.call('POST /schedules/{schedule}/run', { schedule })

const remove = (platform: PlatformClient, schedule: string) =>
  platform.call('DELETE /schedules/{schedule}', { schedule })

interface Added {
  readonly workspace: string
  readonly cron: string
  readonly text: string
  readonly flags: AddFlags
}

async function add({ platform, show }: CommandContext, { workspace, cron, text, flags }: Added): Promise<void> {
  const { timeZone, missed, name, webhook, sameConversation, reportTo } = flags
  const id = await resolveWorkspaceId(platform(), workspace)
  const body = {
    cron,
    text,
    time_zone: timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    missed,
    name,
    webhook,
    same_conversation: sameConversation,
    report_to: reportTo,
  }
  const schedule = await platform().call('POST /workspaces/{id}/schedules', { id, body })
  const next = schedule.next_at === null ? 'no time follows' : `next ${schedule.next_at}`
  const secret = schedule.webhook_secret
  const secretLine = secret === undefined ? '' : `The webhook is signed with ${secret}, which is shown only now.\n`
  await show(schedule, () => `added ${schedule.id} "${schedule.name}", ${next}\n${secretLine}`)
}

async function list({ platform, show, table }: CommandContext, workspace: string | undefined): Promise<void> {
  const id = workspace === undefined ? undefined : await resolveWorkspaceId(platform(), workspace)
  const schedules = await platform().all('GET /schedules', 'schedules', { workspace: id })
  const names = new Map((await listWorkspaces(platform())).map((each) => [each.id, each.name]))
  await show(schedules, () =>
    table(
      schedules,
      columns((each) => names.get(each) ?? each),
      'There are no schedules.',
    ),
  )
}

const columns = (nameOf: (workspaceId: string) => string): readonly Column<ScheduleView>[] => [
  { title: 'id', of: ({ id }) => id, isWhole: true },
  { title: 'workspace', of: ({ workspace_id: id }) => nameOf(id) },
  { title: 'name', of: ({ name }) => withoutControls(name) },
  { title: 'times', of: ({ cron, time_zone: zone }) => `${cron} ${zone}` },
  { title: 'next', of: ({ paused, next_at: at }) => (paused ? 'paused' : (at ?? 'no further time')) },
  { title: 'last result', of: lastResult },
]

function lastResult({ last, note }: ScheduleView): string {
  if (note !== null) return note
  if (last === null) return 'has not run'
  const state = last.state === null ? 'no longer stored' : taskStateText(last.state)
  return withoutControls(`${last.at ?? ''} ${state} ${last.text}`.replace(/\s+/g, ' ').trim())
}
