/**
 * Creates, finds and lists workspaces. Creation checks the backend first: a workspace that is `online` can answer, and
 * a workspace that cannot run is `failed` with the reason.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { isWorkspaceId, workspaceId } from '../ids.ts'
import type { Store } from '../store/store.ts'
import {
  type ConfigFileChange,
  changeConfig,
  DEFAULT_RUNTIME,
  parseConfig,
  WORKSPACE_CONFIG_FILE,
} from './config/config-file.ts'
import type { Homes } from './homes/homes.ts'
import { toStoredFolder, withAbsoluteFolder } from './homes/stored-folders.ts'
import { AUTH_TOKEN_FILE } from './homes/token-file.ts'
import { defaultWorkingDir, requireWorkingDir } from './homes/working-dir.ts'
import {
  type CreatedWorkspace,
  DEFAULT_TIER,
  type NewWorkspace,
  type Workspace,
  type WorkspaceLoad,
  type WorkspacePage,
  type WorkspaceQuery,
  type Workspaces,
} from './workspace.ts'
import { badConfigAsInvalidRequest, runtimeConfigOf, type WorkspaceConfigs } from './workspace-configs.ts'
import {
  findIdsByName,
  findWorkspace,
  insertWorkspace,
  listWorkspaceIds,
  listWorkspacePage,
  requireFreeName,
  requireParent,
  type StoreOnlySettings,
} from './workspace-rows.ts'

export interface WorkspacesOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: WorkspaceConfigs
}

export function createWorkspaces(options: WorkspacesOptions): Workspaces {
  const { store, homes, configs } = options
  const shown = (workspace: Workspace & WorkspaceLoad) => withAbsoluteFolder(homes.dataDir, workspace)
  /** A config that is invalid shows in the status of its workspace, so only a store failure is thrown. */
  const refreshQuietly = (id: string) =>
    configs.refresh(id).catch((error) => {
      if (toMoleculeError(error).code === 'store_unavailable') throw error
    })
  const list = async (query: WorkspaceQuery): Promise<WorkspacePage> => {
    for (const id of await store.read(() => listWorkspaceIds(query))) {
      await refreshQuietly(id)
    }
    const { read, next } = await store.read(() => listWorkspacePage(query))
    return { workspaces: read.map(shown), next }
  }
  return {
    create: (input) => provisionWorkspace(input, options),
    async check(input) {
      const { parentId } = input
      const { validated } = await validateNew(input, options)
      if (input.allowDuplicate === false) await store.read(() => requireFreeName(validated.config.name))
      if (parentId !== undefined) await store.read(() => requireParent(parentId))
      return validated.checked
    },
    async get(id) {
      if (!isWorkspaceId(id)) return undefined
      await refreshQuietly(id)
      const found = await store.read(() => findWorkspace(id))
      return found && shown(found)
    },
    idsNamed: (name) => store.read(() => findIdsByName(name)),
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

async function provisionWorkspace(input: NewWorkspace, options: WorkspacesOptions): Promise<CreatedWorkspace> {
  const { store, homes } = options
  const id = workspaceId()
  const { text, validated, workingDir, foreignTokens } = await validateNew(input, options)
  const storeOnly: StoreOnlySettings = {
    tier: input.tier ?? DEFAULT_TIER,
    workingDir: toStoredFolder([homes.dataDir], workingDir ?? defaultWorkingDir(homes, id)),
    parentId: input.parentId,
    permission: input.permission,
    team: input.team,
  }
  try {
    await homes.create(id, { template: input.template, runtime: validated.config.runtime, foreignTokens })
    await homes.writeConfig(id, text)
    await store.write(() => insertWorkspace({ id, storeOnly, ...validated, allowDuplicate: input.allowDuplicate }))
  } catch (error) {
    await homes.discard(id)
    throw error
  }
  const created = await store.read(() => findWorkspace(id))
  if (created === undefined)
    throw new MoleculeError('internal', `workspace ${id} disappeared right after it was created`)
  const namesakes = (await store.read(() => findIdsByName(created.name))).filter((other) => other !== id)
  const shown = withAbsoluteFolder(homes.dataDir, created)
  return { ...shown, warnings: [...(validated.checked.warnings ?? []), ...namesakeWarning(created.name, namesakes)] }
}

/** Refuses an invalid workspace before anything is made. Returns the text of its `config.yaml`. */
async function validateNew(input: NewWorkspace, { homes, configs }: WorkspacesOptions) {
  const base = input.template === undefined ? undefined : await homes.templateConfig(input.template)
  const path = base?.path ?? WORKSPACE_CONFIG_FILE
  const { text, validated, foreignTokens } = await badConfigAsInvalidRequest(async () => {
    const foreign = base === undefined ? [] : foreignTokensOf(input, { text: base.text, path })
    const change = initialConfig(input, base?.text)
    // The option of the template would name the token of another vendor.
    const options = { ...(foreign.length > 1 && { auth_token_file: null }), ...change.runtime_config }
    const written = changeConfig(base?.text, { ...change, runtime_config: options }, path)
    return { text: written, validated: await configs.validate(written, path, input.permission), foreignTokens: foreign }
  })
  const workingDir = input.workingDir ?? validated.config.workingDir
  if (workingDir !== undefined) requireWorkingDir(workingDir)
  return { text, validated, workingDir, foreignTokens }
}

/**
 * The token files of a template for another runtime than the new workspace's: `.auth-token`, and the file that its
 * option names. A token belongs to one vendor. A template without a runtime is one of the default runtime.
 */
function foreignTokensOf(
  { name, runtime }: NewWorkspace,
  { text, path }: { readonly text: string | undefined; readonly path: string },
): readonly string[] {
  const template = parseConfig(changeConfig(text, { name }, path), path)
  if (runtime === undefined || runtime === template.runtime) return []
  const { auth_token_file: option } = template.runtimeConfig
  return typeof option === 'string' ? [AUTH_TOKEN_FILE, option] : [AUTH_TOKEN_FILE]
}

/** Names need not be unique, but a second workspace of a name should not come as a surprise. */
function namesakeWarning(name: string, ids: readonly string[]): string[] {
  if (ids.length === 0) return []
  const others = ids.length === 1 ? 'another workspace is' : `${ids.length} other workspaces are`
  return [`${others} called ${JSON.stringify(name)} (${ids.join(', ')}); commands and URLs then need the id`]
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
