/**
 * The registry: workspaces that run elsewhere say that they are there, and workspaces find each other. A sign of life
 * is a time and what was said with it, nothing more; whether that means `online` is judged when somebody looks.
 */
import { isWorkspaceId } from '../ids.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { mayTalk } from './may-talk.ts'
import type { HeartbeatReport } from './presence.ts'
import type { Workspace, WorkspaceLoad } from './workspace.ts'
import { findWorkspace, listWorkspaces, setStatusText, workspaceNotFound } from './workspace-rows.ts'

/** How often a workspace is asked to be heard of: a third of the silence that makes it offline. */
export const HEARTBEAT_SECONDS = 30

/** Contract: each throws `not_found` for a workspace that is not there, and answers when what was said is durable. */
export interface WorkspaceRegistry {
  /** It is there from now on, whatever was known of it before. */
  register(id: string, report: HeartbeatReport): Promise<Workspace & WorkspaceLoad>
  /** Still there. What a report leaves out stays as it was last said. */
  heartbeat(id: string, report: HeartbeatReport): Promise<Workspace & WorkspaceLoad>
  /** What it says it is doing, on its card from now on; empty = nothing. */
  setStatusText(id: string, text: string): Promise<Workspace & WorkspaceLoad>
  /** Those that it may talk to. */
  peers(id: string): Promise<(Workspace & WorkspaceLoad)[]>
}

export function createWorkspaceRegistry(store: Store): WorkspaceRegistry {
  const update = async (id: string, change: () => Transaction<void>) => {
    if (!isWorkspaceId(id)) throw workspaceNotFound(id)
    await store.write(change, id)
    const workspace = await store.read(() => findWorkspace(id))
    if (workspace === undefined) throw workspaceNotFound(id)
    return workspace
  }
  return {
    register: (id, report) => update(id, () => register(id, report)),
    heartbeat: (id, report) => update(id, () => heartbeat(id, report)),
    setStatusText: (id, text) => update(id, () => writeStatusText(id, text)),
    async peers(id) {
      const all = await store.read(listWorkspaces)
      const own = all.find((workspace) => workspace.id === id)
      if (own === undefined) throw workspaceNotFound(id)
      return all.filter((workspace) => mayTalk(own, workspace).ok)
    },
  }
}

function* register(id: string, report: HeartbeatReport): Transaction<void> {
  yield* lockWorkspace(id)
  yield* sql(
    `insert into presence (workspace_id, registered_at, heard_at, report) values ($1, now_ms(), now_ms(), $2)
     on conflict (workspace_id) do update
     set registered_at = excluded.registered_at, heard_at = excluded.heard_at, report = excluded.report`,
    [id, JSON.stringify(report)],
  )
}

function* heartbeat(id: string, report: HeartbeatReport): Transaction<void> {
  const [known] = yield* sql<{ report: string }>('select report from presence where workspace_id = $1', [id])
  if (known === undefined) return yield* register(id, report)
  const merged = { ...(JSON.parse(known.report) as HeartbeatReport), ...report }
  yield* sql('update presence set heard_at = now_ms(), report = $2 where workspace_id = $1', [
    id,
    JSON.stringify(merged),
  ])
}

function* writeStatusText(id: string, text: string): Transaction<void> {
  yield* lockWorkspace(id)
  yield* setStatusText(id, text)
}

/** Locked, so that a workspace that is being deleted leaves nothing behind. */
function* lockWorkspace(id: string): Transaction<void> {
  const rows = yield* sql('select slots from workspace_load where workspace_id = $1 /*for update*/', [id])
  if (rows.length === 0) throw workspaceNotFound(id)
}
