/** The difference between the schedules of a workspace in a team file and those that it has on the platform. */
import type { ApiBody } from '../../api/api.ts'
import type { ScheduleView } from '../../client/views.ts'
import { MoleculeError } from '../../errors.ts'
import type { Json } from '../../protocol/a2a.ts'
import type { FieldChange } from './compare-workspace.ts'
import type { TeamSchedule, TeamWorkspace } from './team-file.ts'

/** Creates the schedule, or changes it where there is an id. */
export type ScheduleWrite =
  | { readonly id?: undefined; readonly body: ApiBody<'POST /workspaces/{id}/schedules'> }
  | { readonly id: string; readonly body: ApiBody<'PATCH /schedules/{schedule}'> }

const COMPARED = ['cron', 'time_zone', 'text', 'missed', 'same_conversation', 'report_to'] as const
/** Not shown for a new schedule. */
const DEFAULTS: Partial<Record<(typeof COMPARED)[number], Json>> = {
  time_zone: 'UTC',
  missed: 'skip',
  same_conversation: false,
  report_to: '',
}

export function compareSchedules(
  { schedules: wanted, at }: Pick<TeamWorkspace, 'schedules' | 'at'>,
  found: readonly ScheduleView[],
  team: string,
): { readonly fields: FieldChange[]; readonly schedules: ScheduleWrite[] } {
  const fields: FieldChange[] = []
  const schedules: ScheduleWrite[] = []
  for (const schedule of wanted) {
    const same = found.filter(({ name }) => name === schedule.name)
    if (same.length > 1) throw ambiguous(same, at('schedules', schedule.name))
    const [known] = same
    const changed = COMPARED.filter((key) => schedule[key] !== (known === undefined ? DEFAULTS[key] : known[key]))
    for (const key of changed) {
      const before = known === undefined ? {} : { before: known[key] }
      fields.push({ key: `schedules.${schedule.name}.${key}`, ...before, after: schedule[key] })
    }
    if (known === undefined) schedules.push({ body: { ...schedule, team } })
    else if (changed.length > 0) schedules.push({ id: known.id, body: pick(schedule, changed) })
  }
  return { fields, schedules }
}

const pick = (schedule: TeamSchedule, keys: readonly (typeof COMPARED)[number][]) =>
  Object.fromEntries(keys.map((key) => [key, schedule[key]]))

function ambiguous(same: readonly ScheduleView[], at: string): MoleculeError {
  const ids = same.map(({ id }) => id).join(', ')
  const message = `${at}: ${same.length} schedules are called "${same[0]?.name}" (${ids}); remove all but one`
  return new MoleculeError('bad_config', message)
}
