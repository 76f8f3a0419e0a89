/**
 * Creates, finds and lists workspaces. Creation checks the backend first: a workspace that is `online` can answer, and
 * a workspace that cannot run is `failed` with the reason.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { isWorkspaceId, workspaceId } from '../ids.ts'
import type { Store } from '../store/store.ts'
import { type ConfigFileChange, changeConfig, DEFAULT_RUNTIME, WORKSPACE_CONFIG_FILE } from './config/config-file.ts'
import { badConfigAsInvalidRequest, runtimeConfigOf, type WorkspaceConfigs } from './config/workspace-configs.ts'
import type { Homes } from './homes/homes.ts'
import { defaultWorkingDir, requireWorkingDir } from './homes/working-dir.ts'
import {
  DEFAULT_TIER,
  type NewWorkspace,
  type Workspace,
  type WorkspaceLoad,
  type WorkspacePage,
  type WorkspaceQuery,
  type Workspaces,
} from './workspace.ts'
import {
  findWorkspace,
  insertWorkspace,
  listWorkspaceIds,
  listWorkspacePage,
  type StoreOnlySettings,
} from './workspace-rows.ts'

export interface WorkspacesOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
}

export function createWorkspaces(options: WorkspacesOptions): Workspaces {
  const { store, configs } = options
  /** A config that is invalid shows in the status of its workspace, so only a store failure is thrown. */
  const refreshQuietly = (id: string) =>
    configs.refresh(id).catch((error) => {
      if (toMoleculeError(error).code === 'store_unavailable') throw error
    })
  const list = async (query: WorkspaceQuery): Promise<WorkspacePage> => {
    for (const id of await store.read(() => listWorkspaceIds(query))) {
      await refreshQuietly(id)
    }
    return await store.read(() => listWorkspacePage(query))
  }
  return {
    create: (input) => provisionWorkspace(input, options),
    async get(id) {
      if (!isWorkspaceId(id)) return undefined
      await refreshQuietly(id)
      return await store.read(() => findWorkspace(id))
    },
    list,
    async all() {
      const found: (Workspace & WorkspaceLoad)[] = []
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page: WorkspacePage = await list({ after, limit: ALL_PAGE_WORKSPACES })
        found.push(...page.workspaces)
        after = page.next
        if (after !== undefined) await nextTurn()
      }
      return found
    },
  }
}

/** Workspaces that are read at once for a list of all: a few milliseconds of work. */
const ALL_PAGE_WORKSPACES = 100

async function provisionWorkspace(
  input: NewWorkspace,
  { store, homes, configs }: WorkspacesOptions,
): Promise<Workspace> {
  const id = workspaceId()
  const base = input.template === undefined ? undefined : await homes.templateConfig(input.template)
  const path = base?.path ?? WORKSPACE_CONFIG_FILE
  const { text, validated } = await badConfigAsInvalidRequest(async () => {
    const written = changeConfig(base?.text, initialConfig(input, base?.text), path)
    return { text: written, validated: await configs.validate(written, path) }
  })
  const workingDir = input.workingDir ?? validated.config.workingDir
  if (workingDir !== undefined) requireWorkingDir(workingDir)
  const storeOnly: StoreOnlySettings = {
    tier: input.tier ?? DEFAULT_TIER,
    workingDir: workingDir ?? defaultWorkingDir(homes, id),
    ...(input.parentId !== undefined && { parentId: input.parentId }),
    ...(input.permission !== undefined && { permission: input.permission }),
  }
  try {
    await homes.create(id, input.template)
    await homes.writeConfig(id, text)
    await store.write(() => insertWorkspace({ id, storeOnly, ...validated }))
  } catch (error) {
    await homes.discard(id)
    throw error
  }
  const created = await store.read(() => findWorkspace(id))
  if (created === undefined)
    throw new MoleculeError('internal', `workspace ${id} disappeared right after it was created`)
  return created
}

function initialConfig(input: NewWorkspace, base: string | undefined): ConfigFileChange {
  const { name, role, model } = input
  const runtime = input.runtime ?? (base === undefined ? DEFAULT_RUNTIME : undefined)
  return {
    name,
    ...(role !== undefined || base === undefined ? { role: role ?? '' } : {}),
    ...(runtime !== undefined && { runtime }),
    ...(model !== undefined && { model }),
    runtime_config: runtimeConfigOf(input),
  }
}
