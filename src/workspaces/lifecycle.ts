/**
 * Changes, restarts, pauses, stops, resumes and removes a workspace. `config.yaml` stays the source of its settings: a change
 * is written to the file first and mirrored into the store after. A removal starts at the deepest child, so that a
 * crash in the middle leaves no child without its parent.
 */
import type { Clock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import type { WorkspaceQueues } from '../inbox/queues.ts'
import type { Store } from '../store/store.ts'
import { type ConfigFileChange, changeConfig, WORKSPACE_CONFIG_FILE } from './config/config-file.ts'
import type { Homes } from './homes/homes.ts'
import { toStoredFolder, withAbsoluteFolder } from './homes/stored-folders.ts'
import { requireWorkingDir } from './homes/working-dir.ts'
import type { Workspace, WorkspaceChange, WorkspaceLifecycle } from './workspace.ts'
import { badConfigAsInvalidRequest, configTextOf, runtimeConfigOf, type WorkspaceConfigs } from './workspace-configs.ts'
import {
  changeStoreOnlySettings,
  listTeam,
  markDeleted,
  requireFreeName,
  requireWorkspace,
  type StoreOnlyChange,
  type TeamMember,
} from './workspace-rows.ts'

export interface WorkspaceLifecycleOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
  readonly queues: WorkspaceQueues
  readonly clock: Clock
  /** Revokes every token of the workspace. */
  readonly revokeTokens: (workspaceId: string) => Promise<void>
  /** Revokes the tokens that processes of its turns have got so far. */
  readonly revokeConversations: (workspaceId: string) => Promise<void>
  /** The next turn of the workspace starts a new backend. */
  readonly retireBackend: (workspaceId: string) => void
  /** Looks at the log-in of the workspace's agent again; default: nothing looks at it. */
  readonly refreshLogin?: (workspaceId: string) => Promise<void>
}

const DELETED = { code: 'canceled', message: 'the workspace was deleted' }

export function createWorkspaceLifecycle(options: WorkspaceLifecycleOptions): WorkspaceLifecycle {
  const { store, homes, configs, queues } = options
  const required = async (id: string) => withAbsoluteFolder(homes.dataDir, await store.read(() => requireWorkspace(id)))
  return {
    async change(id, change) {
      const workspace = await required(id)
      if (change.workingDir !== undefined) requireWorkingDir(change.workingDir)
      await requireFreeNewName(workspace, change, store)
      const config = configChange(change)
      const storeOnly = storeOnlyChange(change, homes)
      const file =
        Object.keys(config).length > 0 ? await validateChange(workspace, { ...change, config }, options) : undefined
      // Rows first: a change that the store refuses must not be in the file already.
      if (Object.keys(storeOnly).length > 0) await store.write(() => changeStoreOnlySettings(id, storeOnly))
      if (file !== undefined) await badConfigAsInvalidRequest(() => configs.save(id, file.text, file.validated))
      else if (change.tier !== undefined || change.permission !== undefined) await configs.recheck(id)
      await options.refreshLogin?.(id)
      return await required(id)
    },
    async checkChange(id, change) {
      const workspace = await required(id)
      if (change.workingDir !== undefined) requireWorkingDir(change.workingDir)
      await requireFreeNewName(workspace, change, store)
      const config = configChange(change)
      return (await validateChange(workspace, { ...change, config }, options)).validated.checked
    },
    async remove(id, { cascade }) {
      await required(id)
      const below = descendants(id, await store.read(listTeam))
      if (below.length > 0 && !cascade) throw hasChildrenError(id, below.length)
      for (const removed of [...below, id]) await removeOne(removed, options)
      return [...below, id]
    },
    async restart(id) {
      await required(id)
      await options.revokeConversations(id)
      options.retireBackend(id)
      await configs.recheck(id)
      await options.refreshLogin?.(id)
      return await required(id)
    },
    async pause(id, { now }) {
      await required(id)
      await queues.pause(id, { now })
      return await required(id)
    },
    async stop(id) {
      await required(id)
      const canceled = await queues.stop(id)
      return { workspace: await required(id), canceled }
    },
    async resume(id) {
      await required(id)
      await queues.resume(id)
      return await required(id)
    },
  }
}

/** Two renames at the same moment may still give two workspaces one name: the file of a workspace has no lock. */
async function requireFreeNewName(
  { id, name: before }: Workspace,
  { name, allowDuplicate }: WorkspaceChange,
  store: Store,
): Promise<void> {
  if (allowDuplicate !== false || name === undefined || name === before) return
  await store.read(() => requireFreeName(name, id))
}

function configChange(change: WorkspaceChange): ConfigFileChange {
  const { name, role, runtime, model } = change
  const settings = runtimeConfigOf(change)
  return {
    ...(name !== undefined && { name }),
    ...(role !== undefined && { role }),
    ...(runtime !== undefined && { runtime }),
    ...(model !== undefined && { model }),
    ...(Object.keys(settings).length > 0 && { runtime_config: settings }),
  }
}

function storeOnlyChange(
  { parentId, tier, permission, workingDir }: WorkspaceChange,
  { dataDir }: Homes,
): StoreOnlyChange {
  return {
    ...(parentId !== undefined && { parentId }),
    ...(tier !== undefined && { tier }),
    ...(permission !== undefined && { permission }),
    ...(workingDir !== undefined && { workingDir: toStoredFolder([dataDir], workingDir) }),
  }
}

/** The changed text of `config.yaml`. Refuses a change that makes it invalid. */
function validateChange(
  workspace: Workspace,
  { config, permission = workspace.permission }: Pick<WorkspaceChange, 'permission'> & { config: ConfigFileChange },
  { homes, configs }: WorkspaceLifecycleOptions,
) {
  const { id } = workspace
  return badConfigAsInvalidRequest(async () => {
    const stored = homes.stamp(id) ? await homes.readConfig(id) : undefined
    try {
      const text = changeConfig(stored ?? configTextOf(workspace), config, WORKSPACE_CONFIG_FILE)
      return { text, validated: await configs.validate(text, WORKSPACE_CONFIG_FILE, permission) }
    } catch (thrown) {
      // A file that was wrong before is refused with its path and line. Those of a text that is never written would mislead.
      if (stored !== undefined) await configs.validate(stored, homes.configPath(id), workspace.permission)
      throw thrown
    }
  })
}

async function removeOne(id: string, options: WorkspaceLifecycleOptions): Promise<void> {
  const { store, homes, queues, clock, retireBackend } = options
  await options.revokeTokens(id)
  // Tombstone first: after a crash between the two the workspace still exists and can be deleted again.
  await store.write(() => markDeleted(id), id)
  await queues.end(id, DELETED)
  retireBackend(id)
  await homes.trash(id, clock.nowMs())
}

/** All descendants of a workspace, the deepest first. */
function descendants(id: string, team: readonly TeamMember[]): string[] {
  const children = team.filter(({ parentId }) => parentId === id).map((child) => child.id)
  return children.flatMap((child) => [...descendants(child, team), child])
}

function hasChildrenError(id: string, count: number): MoleculeError {
  const message = `${id} has ${count} ${count === 1 ? 'workspace' : 'workspaces'} below it; add cascade=true to delete them too`
  return new MoleculeError('unsupported_operation', message, { details: { below: count } })
}
