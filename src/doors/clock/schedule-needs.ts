/** Schedules that the platform paused, as needs of a person: resuming one makes it the work of the person's token. */
import type { NeedSource } from '../../inbox/owners.ts'
import type { Schedule, Schedules } from '../../workspaces/schedules.ts'

export function scheduleNeeds({ stopped }: Pick<Schedules, 'stopped'>): NeedSource {
  return {
    kind: 'schedule',
    async summary(workspaceId) {
      const all = await stopped(workspaceId)
      return { count: all.length, mark: all.map(({ id, stoppedAtMs }) => `${id}.${stoppedAtMs}`).join(',') }
    },
    // The number of schedules has a limit, so there are no pages.
    list: async ({ workspaceId }) => ({ rows: (await stopped(workspaceId)).map(toNeed) }),
  }
}

const toNeed = ({ id, workspaceId, name, note, stoppedAtMs }: Schedule) => ({
  kind: 'schedule' as const,
  id,
  workspaceId,
  sinceMs: stoppedAtMs ?? 0,
  reason: `the schedule "${name}" is paused: ${note ?? 'the platform stopped it'}`,
})
