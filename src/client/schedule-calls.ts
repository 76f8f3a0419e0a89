/** The calls of the platform client about schedules. */
import { allPages, type Paged, withAfter } from './pages.ts'

interface ScheduleRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: string
}

export interface ScheduleCalls {
  addSchedule(workspaceId: string, schedule: NewSchedule): Promise<ScheduleView & { readonly webhook_secret?: string }>
  /** Of one workspace, or of all. */
  listSchedules(workspaceId?: string): Promise<ScheduleView[]>
  changeSchedule(
    id: string,
    change: Partial<Omit<NewSchedule, 'webhook' | 'team'>> & { readonly paused?: boolean },
  ): Promise<ScheduleView>
  /** The id of the task. */
  runSchedule(id: string): Promise<string>
  removeSchedule(id: string): Promise<void>
}

export interface NewSchedule {
  readonly cron: string
  readonly text: string
  readonly name?: string
  readonly time_zone?: string
  readonly missed?: string
  readonly same_conversation?: boolean
  readonly webhook?: string
  readonly team?: string
}

export interface ScheduleView extends Required<Omit<NewSchedule, 'webhook' | 'team'>> {
  readonly id: string
  readonly workspace_id: string
  readonly webhook: string | null
  /** The team whose file made the schedule. */
  readonly team: string | null
  readonly paused: boolean
  readonly next_at: string | null
  readonly note: string | null
  readonly last: {
    readonly at: string | null
    readonly task_id: string
    readonly state: string | null
    readonly text: string
  } | null
}

interface ScheduleViews extends Paged {
  readonly schedules: readonly ScheduleView[]
}

export function scheduleCalls(call: (request: ScheduleRequest) => Promise<unknown>): ScheduleCalls {
  const at = (id: string, below = '') => `/schedules/${encodeURIComponent(id)}${below}`
  return {
    addSchedule: async (workspaceId, schedule) =>
      (await call({
        method: 'POST',
        path: `/workspaces/${encodeURIComponent(workspaceId)}/schedules`,
        body: JSON.stringify(schedule),
      })) as ScheduleView & { readonly webhook_secret?: string },
    async listSchedules(workspaceId) {
      const query = workspaceId === undefined ? '' : `?${new URLSearchParams({ workspace: workspaceId })}`
      const read = async (after: string | undefined) =>
        (await call({ method: 'GET', path: withAfter(`/schedules${query}`, after) })) as ScheduleViews
      return (await allPages(read)).flatMap(({ schedules }) => schedules)
    },
    changeSchedule: async (id, change) =>
      (await call({ method: 'PATCH', path: at(id), body: JSON.stringify(change) })) as ScheduleView,
    runSchedule: async (id) => ((await call({ method: 'POST', path: at(id, '/run') })) as { task_id: string }).task_id,
    async removeSchedule(id) {
      await call({ method: 'DELETE', path: at(id) })
    },
  }
}
