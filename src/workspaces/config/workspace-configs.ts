/**
 * The configuration of workspaces, hot: whoever needs one asks here first, and a `config.yaml` that has changed since
 * it was last read is read again, checked and mirrored into the store. A file that cannot be used makes its workspace
 * `failed` with file and line, until it is mended; it touches no other workspace.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { Homes } from '../homes/homes.ts'
import { oncePerTick } from '../once-per-tick.ts'
import { type BackendCheck, isExternal, type Workspace } from '../workspace.ts'
import { findWorkspace, listWorkspaces, mirrorConfig, recordCheck } from '../workspace-rows.ts'
import { backendOptions } from './backend-options.ts'
import { changeConfig, locateKey, parseConfig, WORKSPACE_CONFIG_FILE, type WorkspaceConfig } from './config-file.ts'

export interface WorkspaceConfigsOptions {
  readonly store: Store
  readonly homes: Homes
  /** Builds and validates the backend: throws `bad_config` for options it refuses, says why it cannot run here. */
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<BackendCheck>
  readonly log: Log
}

export interface ValidatedConfig {
  readonly config: WorkspaceConfig
  readonly checked: BackendCheck
}

export interface WorkspaceConfigs {
  /** Takes over what the file says if it has changed; throws, mostly `bad_config`, while it cannot be used. */
  refresh(id: string): Promise<void>
  /** The same though nothing has changed: the program behind the backend may have come or gone. */
  recheck(id: string): Promise<void>
  /** Every workspace, a few at a time; problems become their status. */
  recheckAll(signal: AbortSignal): Promise<void>
  /** What a text would mean; throws `bad_config` with `path` and line for one that cannot be used. */
  validate(text: string, path: string): Promise<ValidatedConfig>
  /** Writes the file and mirrors it. The text must have been validated. */
  save(id: string, text: string, validated: ValidatedConfig): Promise<void>
}

interface LoadedConfig {
  readonly stamp: string
  readonly problem?: MoleculeError
}

/** Checks of one round at a time; each may start a program. */
const RECHECKS_AT_ONCE = 4

export function createWorkspaceConfigs(options: WorkspaceConfigsOptions): WorkspaceConfigs {
  const { store, homes, log } = options
  const known = new Map<string, LoadedConfig>()
  const loading = new Map<string, Promise<void>>()

  const take = async (id: string, stamp: string) => {
    const problem = await reloadConfig(id, stamp, options)
    // The stamp from before reading: a change made meanwhile is seen next time.
    known.set(id, { stamp, ...(problem !== undefined && { problem }) })
    if (problem !== undefined) log.warn({ workspaceId: id, reason: problem.message }, 'a workspace cannot be used')
  }
  const load = (id: string, stamp: string) => {
    const running = loading.get(id) ?? take(id, stamp).finally(() => loading.delete(id))
    loading.set(id, running)
    return running
  }
  const stampOf = oncePerTick(homes.stamp)
  const refresh = async (id: string) => {
    const stamp = stampOf(id)
    if (stamp === undefined) return
    if (known.get(id)?.stamp !== stamp) await load(id, stamp)
    const problem = known.get(id)?.problem
    if (problem !== undefined) throw problem
  }
  const recheck = async (id: string) => {
    known.delete(id)
    const stamp = homes.stamp(id)
    if (stamp !== undefined) await load(id, stamp)
  }
  return {
    refresh,
    recheck,
    validate: (text, path) => validateConfig(text, path, options),
    async save(id, text, { config, checked }) {
      if (homes.stamp(id) !== undefined) await homes.writeConfig(id, text)
      await store.write(() => mirrorConfig(id, config, checked), id)
      known.delete(id)
    },
    async recheckAll(signal) {
      const ids = (await store.read(listWorkspaces)).map(({ id }) => id)
      const work = async () => {
        for (let id = ids.shift(); id !== undefined && !signal.aborted; id = ids.shift()) {
          await recheck(id).catch((error) =>
            log.warn({ err: toMoleculeError(error), workspaceId: id }, 'a workspace could not be checked'),
          )
        }
      }
      await Promise.all(Array.from({ length: RECHECKS_AT_ONCE }, work))
    },
  }
}

/** Reads, judges and mirrors; gives what is wrong with the file, if anything is. */
async function reloadConfig(
  id: string,
  stamp: string,
  options: WorkspaceConfigsOptions,
): Promise<MoleculeError | undefined> {
  const { store, homes, log } = options
  try {
    const text = stamp === '' ? await restoreConfig(id, options) : await homes.readConfig(id)
    if (text === undefined) return undefined
    const { config, checked } = await validateConfig(text, homes.configPath(id), options)
    await store.write(() => mirrorConfig(id, config, checked), id)
    if (!checked.ok) log.warn({ workspaceId: id, reason: checked.reason }, 'a workspace cannot run')
    return undefined
  } catch (thrown) {
    const error = toMoleculeError(thrown, 'bad_config')
    // Whatever is wrong with one workspace is its own trouble: a list of all must not fail for it.
    if (error.code === 'store_unavailable') throw error
    await store.write(() => recordCheck(id, { ok: false, reason: error.message }), id)
    return error
  }
}

/** Somebody removed the file: it is written again as it was last known. */
async function restoreConfig(id: string, { store, homes, log }: WorkspaceConfigsOptions): Promise<string | undefined> {
  const workspace = await store.read(() => findWorkspace(id))
  if (workspace === undefined) return undefined
  log.warn({ workspaceId: id }, 'config.yaml was gone and has been written again')
  const text = configTextOf(workspace)
  await homes.writeConfig(id, text)
  return text
}

/** What the store knows of a workspace, as a config. */
export function configTextOf({ name, role, runtime, model, ...workspace }: Workspace): string {
  const { maxAttempts, maxConcurrentTasks, runtimeConfig } = workspace
  const settings = { max_attempts: maxAttempts, max_concurrent_tasks: maxConcurrentTasks, ...runtimeConfig }
  const change = { name, role, runtime, ...(model !== undefined && { model }), runtime_config: settings }
  return changeConfig(undefined, change, WORKSPACE_CONFIG_FILE)
}

async function validateConfig(
  text: string,
  path: string,
  { check }: Pick<WorkspaceConfigsOptions, 'check'>,
): Promise<ValidatedConfig> {
  const config = parseConfig(text, path)
  if (isExternal(config)) return { config, checked: { ok: true } }
  try {
    return { config, checked: await check(config.runtime, backendOptions(config.runtimeConfig)) }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code !== 'bad_config') throw error
    const key = error.details['key']
    const at = typeof key === 'string' ? ['runtime_config', key] : ['runtime']
    throw new MoleculeError('bad_config', `${locateKey(text, path, at)}: ${error.message}`, {
      cause: error,
      details: error.details,
    })
  }
}

/** What a config or a backend refuses is the caller's mistake here, not a broken configuration of the platform. */
export async function badConfigAsInvalidRequest<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MoleculeError) || error.code !== 'bad_config') throw error
    // A caller who wrote no file is not told of lines in one.
    const message = error.message.replace(/^config\.yaml:\d+: /, '')
    throw new MoleculeError('invalid_request', message, { cause: error, details: error.details })
  }
}
