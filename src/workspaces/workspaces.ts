/**
 * Who exists: workspaces are made, looked up and listed here. Making one checks its backend first, so that a workspace
 * that says `online` can answer, and one that cannot says why.
 */
import { MoleculeError, toMoleculeError } from '../errors.ts'
import { workspaceId } from '../ids.ts'
import type { Json } from '../protocol/a2a.ts'
import type { Store } from '../store/store.ts'
import { type ConfigChange, changeConfig } from './config-file.ts'
import type { Configs } from './configs.ts'
import type { Homes } from './homes.ts'
import { find, insert, list, type OwnSettings } from './rows.ts'
import { defaultWorkingDir, requireWorkingDir } from './working-dir.ts'
import type { NewWorkspace, Workspace, Workspaces } from './workspace.ts'

const DEFAULT_RUNTIME = 'claude-code'
const DEFAULT_TIER = 2

export interface WorkspacesOptions {
  readonly store: Store
  readonly homes: Homes
  readonly configs: Configs
}

export function createWorkspaces(options: WorkspacesOptions): Workspaces {
  const { store, configs } = options
  /** What cannot be used is told by its status. */
  const look = (id: string) =>
    configs.refresh(id).catch((error) => {
      if (toMoleculeError(error).code === 'store_unavailable') throw error
    })
  return {
    create: (input) => create(input, options),
    async get(id) {
      if (!isWorkspaceId(id)) return undefined
      await look(id)
      return await store.read(() => find(id))
    },
    async list() {
      for (const { id } of await store.read(list)) await look(id)
      return await store.read(list)
    },
  }
}

/** Nothing else may become part of a path. */
export const isWorkspaceId = (id: string): boolean => /^ws_[0-9A-Z]{26}$/.test(id)

async function create(input: NewWorkspace, { store, homes, configs }: WorkspacesOptions): Promise<Workspace> {
  const id = workspaceId()
  const base = input.template === undefined ? undefined : await homes.templateConfig(input.template)
  const path = base?.path ?? 'config.yaml'
  const { text, judged } = await accept(async () => {
    const written = changeConfig(base?.text, configOf(input, base?.text), path)
    return { text: written, judged: await configs.judge(written, path) }
  })
  const workingDir = input.workingDir ?? judged.config.workingDir
  if (workingDir !== undefined) requireWorkingDir(workingDir)
  const own: OwnSettings = {
    tier: input.tier ?? DEFAULT_TIER,
    workingDir: workingDir ?? defaultWorkingDir(homes, id),
    ...(input.parentId !== undefined && { parentId: input.parentId }),
    ...(input.permission !== undefined && { permission: input.permission }),
  }
  try {
    await homes.make(id, input.template)
    await homes.writeConfig(id, text)
    await store.write(() => insert({ id, own, ...judged }))
  } catch (error) {
    await homes.unmake(id)
    throw error
  }
  const made = await store.read(() => find(id))
  if (made === undefined) throw new MoleculeError('internal', `workspace ${id} is gone right after it was made`)
  return made
}

function configOf(input: NewWorkspace, base: string | undefined): ConfigChange {
  const { name, role, model } = input
  const runtime = input.runtime ?? (base === undefined ? DEFAULT_RUNTIME : undefined)
  return {
    name,
    ...(role !== undefined || base === undefined ? { role: role ?? '' } : {}),
    ...(runtime !== undefined && { runtime }),
    ...(model !== undefined && { model }),
    runtime_config: platformKeys(input),
  }
}

/** The runtime's own settings stand among the backend's options in `config.yaml`, and win over those. */
export function platformKeys(
  input: Pick<NewWorkspace, 'maxAttempts' | 'maxConcurrentTasks' | 'runtimeConfig'>,
): Record<string, Json> {
  const { maxAttempts, maxConcurrentTasks, runtimeConfig } = input
  return {
    ...runtimeConfig,
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(maxConcurrentTasks !== undefined && { max_concurrent_tasks: maxConcurrentTasks }),
  }
}

/** What a config or a backend refuses is the caller's mistake here, not a broken configuration of the platform. */
export async function accept<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MoleculeError) || error.code !== 'bad_config') throw error
    // A caller who wrote no file is not told of lines in one.
    const message = error.message.replace(/^config\.yaml:\d+: /, '')
    throw new MoleculeError('invalid_request', message, { cause: error, details: error.details })
  }
}
