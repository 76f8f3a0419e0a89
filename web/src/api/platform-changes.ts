/** Applies messages of the `_platform` stream to the map of workspaces. Unchanged workspaces stay the same objects. */
import type { WorkspaceSummary } from '../../../src/client/views.ts'
import type { LiveMessage } from './log-subscriptions.ts'

export function applyPlatformMessages(
  before: ReadonlyMap<string, WorkspaceSummary> | undefined,
  messages: readonly LiveMessage[],
): ReadonlyMap<string, WorkspaceSummary> | undefined {
  let map: Map<string, WorkspaceSummary> | undefined = before && new Map(before)
  for (const { type, ...message } of messages) {
    if (type === 'snapshot') {
      const all = message['workspaces'] as readonly WorkspaceSummary[]
      map = new Map(all.map((workspace) => [workspace.id, sameOr(map?.get(workspace.id), workspace)]))
      continue
    }
    if (map === undefined) continue
    const id = String(message['id'])
    if (type === 'created' || type === 'changed') map.set(id, message['state'] as WorkspaceSummary)
    if (type === 'deleted') map.delete(id)
  }
  return map
}

const sameOr = (before: WorkspaceSummary | undefined, now: WorkspaceSummary): WorkspaceSummary =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(now) ? before : now
