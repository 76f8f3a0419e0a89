/**
 * The registry: workspaces that run elsewhere send heartbeats here, and workspaces find their peers. A heartbeat is
 * stored as a time and a report. `presence.ts` derives the status from them on every read.
 */
import { isWorkspaceId } from '../ids.ts'
import { lockQueue } from '../inbox/queue-rows.ts'
import { type Store, sql, type Transaction } from '../store/store.ts'
import { mayTalk } from './may-talk.ts'
import type { HeartbeatReport } from './presence.ts'
import type { Workspace, WorkspaceLoad } from './workspace.ts'
import { listWorkspaces, requireWorkspace, setStatusText, workspaceNotFound } from './workspace-rows.ts'

/** The interval that a workspace is asked to keep: a third of `SILENCE_MS_MAX`, so two lost heartbeats do no harm. */
export const HEARTBEAT_SECONDS = 30

/** Contract: each method throws `not_found` for an unknown workspace and resolves when the change is durable. */
export interface WorkspaceRegistry {
  /** The first heartbeat of a new process: replaces the stored report. */
  register(id: string, report: HeartbeatReport): Promise<Workspace & WorkspaceLoad>
  /** Merges the report into the stored one: a field that is left out keeps its last value. */
  heartbeat(id: string, report: HeartbeatReport): Promise<Workspace & WorkspaceLoad>
  /** Sets the status text on the workspace's card. An empty text removes it. */
  setStatusText(id: string, text: string): Promise<Workspace & WorkspaceLoad>
  /** The workspaces that it may talk to. */
  peers(id: string): Promise<(Workspace & WorkspaceLoad)[]>
}

/** The state that a process reports in its last heartbeat. */
const STOPPED_STATE = 'stopped'

export interface WorkspaceRegistryOptions {
  /** True while a bridge of the workspace is connected to this process. */
  readonly hasBridge?: (id: string) => boolean
  /** A process of the workspace has started, or reports that its problem is gone. */
  readonly onWorking?: (id: string) => Promise<void>
}

export function createWorkspaceRegistry(
  store: Store,
  { hasBridge = () => false, onWorking = async () => undefined }: WorkspaceRegistryOptions = {},
): WorkspaceRegistry {
  const write = async <T>(id: string, change: () => Transaction<T>): Promise<T> => {
    if (!isWorkspaceId(id)) throw workspaceNotFound(id)
    return await store.write(change, id)
  }
  const read = (id: string) => store.read(() => requireWorkspace(id))
  return {
    async register(id, report) {
      await write(id, () => register(id, report))
      await onWorking(id)
      return await read(id)
    },
    async heartbeat(id, report) {
      const isStopped = report.runtime_state === STOPPED_STATE
      const worksAgain = await write(id, () => (isStopped ? signOff(id, hasBridge(id)) : heartbeat(id, report)))
      if (worksAgain) await onWorking(id)
      return await read(id)
    },
    async setStatusText(id, text) {
      await write(id, () => writeStatusText(id, text))
      return await read(id)
    },
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
     set registered_at = excluded.registered_at, heard_at = excluded.heard_at, report = excluded.report,
       signed_off_at = null`,
    [id, JSON.stringify(report)],
  )
}

/** True if the problem of the last report is gone. */
function* heartbeat(id: string, report: HeartbeatReport): Transaction<boolean> {
  const [known] = yield* sql<{ report: string }>('select report from presence where workspace_id = $1', [id])
  if (known === undefined) {
    yield* register(id, report)
    return false
  }
  const last = JSON.parse(known.report) as HeartbeatReport
  const merged = { ...last, ...report }
  yield* sql('update presence set heard_at = now_ms(), signed_off_at = null, report = $2 where workspace_id = $1', [
    id,
    JSON.stringify(merged),
  ])
  return hasProblem(last) && !hasProblem(merged)
}

const hasProblem = ({ problem = '' }: HeartbeatReport): boolean => problem !== ''

/** The report goes with the process that made it. While another bridge is connected, its own heartbeats count. */
function* signOff(id: string, hasOtherBridge: boolean): Transaction<false> {
  if (!hasOtherBridge)
    yield* sql(`update presence set signed_off_at = now_ms(), report = '{}' where workspace_id = $1`, [id])
  return false
}

function* writeStatusText(id: string, text: string): Transaction<void> {
  yield* lockWorkspace(id)
  yield* setStatusText(id, text)
}

/** Without the lock, a heartbeat during a deletion would leave a row of a deleted workspace. */
function* lockWorkspace(id: string): Transaction<void> {
  if (!(yield* lockQueue(id))) throw workspaceNotFound(id)
}
