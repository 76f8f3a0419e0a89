/**
 * What becomes of a workspace after it was made: changed, restarted, paused, resumed, removed. `config.yaml` stays the
 * source of what it says: a change is written there first and mirrored after. Removing goes from the leaves up, so
 * that a crash in the middle leaves no child without its parent.
 */
import type { Clock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Queues } from '../inbox/inbox.ts'
import type { Store } from '../store/store.ts'
import { type ConfigChange, changeConfig } from './config-file.ts'
import { type Configs, textOf } from './configs.ts'
import type { Homes } from './homes.ts'
import { bury, changeOwn, find, notThere, type OwnChange, parentsOf } from './rows.ts'
import { requireWorkingDir } from './working-dir.ts'
import type { Lifecycle, Workspace, WorkspaceChange } from './workspace.ts'
import { accept, isWorkspaceId, platformKeys } from './workspaces.ts'

export interface LifecycleOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: Configs
  readonly queues: Queues
  readonly clock: Clock
  /** Tokens that speak for the workspace are worth nothing from now on. */
  readonly revokeTokens: (workspaceId: string) => Promise<void>
  /** The next turn of the workspace begins with a new backend. */
  readonly retireBackend: (workspaceId: string) => void
}

const DELETED = { code: 'canceled', message: 'the workspace was deleted' }

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { store, configs, queues } = options
  const required = async (id: string) => {
    const workspace = isWorkspaceId(id) ? await store.read(() => find(id)) : undefined
    if (workspace === undefined) throw notThere(id)
    return workspace
  }
  return {
    async change(id, change) {
      const workspace = await required(id)
      if (change.workingDir !== undefined) requireWorkingDir(change.workingDir)
      const config = configChange(change)
      const own = ownChange(change)
      // The rows first: what they refuse must not have been written to the file already.
      if (Object.keys(own).length > 0) await store.write(() => changeOwn(id, own))
      if (Object.keys(config).length > 0) await changeFile(workspace, config, options)
      return await required(id)
    },
    async remove(id, { cascade }) {
      await required(id)
      const below = descendants(id, await store.read(parentsOf))
      if (below.length > 0 && !cascade) throw hasChildren(id, below.length)
      for (const gone of [...below, id]) await removeOne(gone, options)
      return [...below, id]
    },
    async restart(id) {
      await required(id)
      options.retireBackend(id)
      await configs.recheck(id)
      return await required(id)
    },
    async pause(id, { now }) {
      await required(id)
      await queues.pause(id, { now })
      return await required(id)
    },
    async resume(id) {
      await required(id)
      await queues.resume(id)
      return await required(id)
    },
  }
}

function configChange(change: WorkspaceChange): ConfigChange {
  const { name, role, runtime, model } = change
  const settings = platformKeys(change)
  return {
    ...(name !== undefined && { name }),
    ...(role !== undefined && { role }),
    ...(runtime !== undefined && { runtime }),
    ...(model !== undefined && { model }),
    ...(Object.keys(settings).length > 0 && { runtime_config: settings }),
  }
}

function ownChange({ parentId, tier, permission, workingDir }: WorkspaceChange): OwnChange {
  return {
    ...(parentId !== undefined && { parentId }),
    ...(tier !== undefined && { tier }),
    ...(permission !== undefined && { permission }),
    ...(workingDir !== undefined && { workingDir }),
  }
}

async function changeFile(workspace: Workspace, change: ConfigChange, options: LifecycleOptions): Promise<void> {
  const { homes, configs } = options
  const { id } = workspace
  const path = homes.configPath(id)
  await accept(async () => {
    const text = homes.stamp(id) ? await homes.readConfig(id) : textOf(workspace)
    const changed = changeConfig(text, change, path)
    await configs.keep(id, changed, await configs.judge(changed, path))
  })
}

async function removeOne(id: string, options: LifecycleOptions): Promise<void> {
  const { store, homes, queues, clock, retireBackend } = options
  await options.revokeTokens(id)
  // The tombstone first: after a crash in between the workspace is still there and can be deleted again.
  await store.write(() => bury(id), id)
  await queues.end(id, DELETED)
  retireBackend(id)
  await homes.trash(id, clock.nowMs())
}

/** All below a workspace, the deepest first. */
function descendants(id: string, parents: ReadonlyMap<string, string | undefined>): string[] {
  const children = [...parents].filter(([, parentId]) => parentId === id).map(([child]) => child)
  return children.flatMap((child) => [...descendants(child, parents), child])
}

function hasChildren(id: string, count: number): MoleculeError {
  const words = `${id} has ${count} ${count === 1 ? 'workspace' : 'workspaces'} below it; add cascade=true to delete them too`
  return new MoleculeError('unsupported_operation', words, { details: { below: count } })
}
