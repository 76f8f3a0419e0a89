/**
 * Keeps the store in step with `config.yaml`. Every use of a workspace calls `refresh` first: a file that has changed
 * is read again, checked and mirrored into the store. An invalid file makes its workspace `failed` with file and line,
 * until a valid version is saved. Other workspaces are not affected.
 */
import { MoleculeError, toMoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Json } from '../protocol/a2a.ts'
import type { Store } from '../store/store.ts'
import { backendOptions } from './config/backend-options.ts'
import { changeConfig, configErrorAt, parseConfig, WORKSPACE_CONFIG_FILE } from './config/config-file.ts'
import { describeOutsideChange, hashConfig, INVALID_OUTSIDE_CHANGE, REMOVED_OUTSIDE } from './config/outside-change.ts'
import type { Homes } from './homes/homes.ts'
import { AUTH_TOKEN_FILE } from './homes/token-file.ts'
import { oncePerTick } from './once-per-tick.ts'
import {
  type BackendCheck,
  isExternal,
  type NewWorkspace,
  NO_SANDBOX_REASON,
  SANDBOX_TIER,
  type Workspace,
} from './workspace.ts'
import {
  findStoredConfig,
  findWorkspace,
  listWorkspaces,
  type MirroredConfig,
  markOnline,
  mirrorConfig,
  recordInvalidConfig,
  type StoredConfig,
} from './workspace-rows.ts'

export interface WorkspaceConfigsOptions {
  readonly store: Store
  readonly homes: Homes
  /** Builds and validates the backend. Throws `bad_config` for invalid options; returns the reason if it cannot run. */
  readonly check: (runtime: string, options: Readonly<Record<string, string>>) => Promise<BackendCheck>
  readonly log: Log
  /** Adds a note to the activity of a workspace; default: none is kept. */
  readonly addNote?: (workspaceId: string, note: ConfigNote) => Promise<unknown>
  /** Called after each change, because it may have raised a limit that messages wait for; default: none waits. */
  readonly limitsChanged?: (workspaceId: string) => Promise<void>
}

export interface ConfigNote {
  readonly type: 'config_changed'
  readonly text: string
  readonly by: string
}

export type ValidatedConfig = MirroredConfig

export interface WorkspaceConfigs {
  /** Reads the file if it has changed. Throws, mostly `bad_config`, while the file is invalid. */
  refresh(id: string): Promise<void>
  /** Reads the file in any case: the program of the backend may have been installed or removed. */
  recheck(id: string): Promise<void>
  /** Rechecks every workspace, a few at a time. A problem becomes the status of its workspace. */
  recheckAll(signal: AbortSignal): Promise<void>
  /** Checks a workspace whose backend could not run; only if it can now, its status changes. */
  recover(id: string): Promise<void>
  /** A turn was answered, so the backend can run, whatever the last check said. */
  answered(id: string): Promise<void>
  /**
   * Parses a text and checks its backend, with the permission that an admin set beside it. Throws `bad_config` with
   * `path` and line if it is invalid.
   */
  validate(text: string, path: string, permission: StoredPermission): Promise<ValidatedConfig>
  /** Writes the file and mirrors it. The text must have been validated. */
  save(id: string, text: string, validated: ValidatedConfig): Promise<void>
}

type StoredPermission = StoredConfig['permission'] | null

interface LoadedConfig {
  readonly stamp: string
  readonly problem?: MoleculeError
}

/** Concurrent checks: each may start a program. */
const RECHECKS_AT_ONCE = 4

export function createWorkspaceConfigs(options: WorkspaceConfigsOptions): WorkspaceConfigs {
  const { store, homes, log } = options
  const known = new Map<string, LoadedConfig>()
  const loading = new Map<string, Promise<void>>()

  /** Workspaces whose backend could not run at the last check. */
  const failed = new Set<string>()

  /** Hashes of the texts that `save` is writing: the store does not know them yet. */
  const saving = new Map<string, string>()

  const reload = async (id: string, stamp: string) => {
    const problem = await reloadConfig(id, stamp, { ...options, failed, isOwn: (hash) => saving.get(id) === hash })
    // The stamp from before the read: a change during the read is then found by the next refresh.
    known.set(id, { stamp, problem })
    const reason = problem?.message
    if (reason !== undefined) log.warn({ workspaceId: id, reason }, 'the config of a workspace is invalid')
  }
  const load = (id: string, stamp: string) => {
    const running = loading.get(id) ?? reload(id, stamp).finally(() => loading.delete(id))
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
    async recover(id) {
      if (known.get(id)?.problem === undefined && (await canRun(id, options))) await recheck(id)
    },
    async answered(id) {
      if (!failed.has(id) || known.get(id)?.problem !== undefined) return
      failed.delete(id)
      await store.write(() => markOnline(id), id)
      log.info({ workspaceId: id }, 'a workspace that could not run has answered: its status is online again')
    },
    validate: (text, path, permission) => validateConfig(text, { path, permission }, options),
    async save(id, text, validated) {
      // Otherwise this write would cover a change on the disk that nobody has seen yet.
      await refresh(id).catch((error) => {
        if (toMoleculeError(error).code !== 'bad_config') throw error
      })
      saving.set(id, validated.configHash)
      try {
        if (homes.stamp(id) !== undefined) await homes.writeConfig(id, text)
        const stored = await store.read(() => findStoredConfig(id))
        await mirror(id, { stored, validated }, { ...options, failed })
      } finally {
        saving.delete(id)
      }
      await options.limitsChanged?.(id)
      known.delete(id)
    },
    async recheckAll(signal) {
      const ids = (await store.read(listWorkspaces)).map(({ id }) => id)
      const recheckNext = async () => {
        for (let id = ids.shift(); id !== undefined && !signal.aborted; id = ids.shift()) {
          await recheck(id).catch((error) => logUnchecked(log, id, error))
        }
      }
      await Promise.all(Array.from({ length: RECHECKS_AT_ONCE }, recheckNext))
    },
  }
}

/** Checks the backend as it is stored, without a word about one that cannot run. */
async function canRun(id: string, { store, check }: WorkspaceConfigsOptions): Promise<boolean> {
  const stored = await store.read(() => findStoredConfig(id))
  if (stored === undefined) return false
  const checked = await check(stored.runtime, optionsToCheck(stored)).catch(() => undefined)
  return checked?.ok === true
}

const logUnchecked = (log: Log, workspaceId: string, error: unknown) =>
  log.warn({ err: toMoleculeError(error), workspaceId }, 'a workspace could not be checked')

interface ReloadOptions extends WorkspaceConfigsOptions {
  /** True for the hash of a text that the platform itself is writing. */
  readonly isOwn: (hash: string) => boolean
  readonly failed: Set<string>
}

/** Reads, checks and mirrors the file. Returns the error of an invalid file. */
async function reloadConfig(id: string, stamp: string, options: ReloadOptions): Promise<MoleculeError | undefined> {
  const { store, homes, log } = options
  let configHash: string | undefined
  const stored = await store.read(() => findStoredConfig(id))
  if (stored === undefined) return undefined
  const isOutside = () =>
    stored.configHash !== undefined && configHash !== stored.configHash && !options.isOwn(configHash ?? '')
  try {
    const text = stamp === '' ? await restoreConfig(id, options) : await homes.readConfig(id)
    if (text === undefined) return undefined
    configHash = hashConfig(text)
    const { permission } = stored
    const validated = await validateConfig(text, { path: homes.configPath(id), permission }, options)
    if (stored.tier === SANDBOX_TIER) throw noSandbox(id)
    if (stamp !== '' && isOutside()) await noteChange(id, describeOutsideChange(stored, validated.config), options)
    await mirror(id, { stored, validated }, options)
    // A change by hand; a change through the API comes from `save`.
    if (stored.configHash !== configHash && !options.isOwn(configHash)) await options.limitsChanged?.(id)
    const { checked } = validated
    if (!checked.ok) log.warn({ workspaceId: id, reason: checked.reason }, 'the backend of a workspace cannot run')
    return undefined
  } catch (thrown) {
    const error = toMoleculeError(thrown, 'bad_config')
    // An error of one workspace must not fail the list of all. A store failure is thrown: it concerns every workspace.
    if (error.code === 'store_unavailable') throw error
    if (isOutside()) await noteChange(id, INVALID_OUTSIDE_CHANGE, options)
    await store.write(() => recordInvalidConfig(id, error.message, configHash), id)
    return error
  }
}

/** Stores the config. The token of an earlier runtime is set aside first, so that no turn gives it to another vendor. */
async function mirror(
  id: string,
  { stored, validated }: { readonly stored: StoredConfig | undefined; readonly validated: ValidatedConfig },
  options: WorkspaceConfigsOptions & Pick<ReloadOptions, 'failed'>,
): Promise<void> {
  const { store, homes, failed } = options
  const { runtime, runtimeConfig } = validated.config
  const before = stored?.runtime ?? runtime
  const isChanged = before !== runtime
  const tokenFile = runtimeConfig['auth_token_file']
  // Named in the same change as the runtime: the owner means this token for it.
  const isMeant = tokenFile !== undefined && tokenFile !== stored?.runtimeConfig['auth_token_file']
  let aside: string | undefined
  if (!isMeant) aside = isChanged ? await homes.setTokenAside(id, before) : await homes.removeStrayToken(id, runtime)
  await store.write(() => mirrorConfig(id, validated), id)
  if (validated.checked.ok) failed.delete(id)
  else failed.add(id)
  if (isChanged) await homes.bringTokenBack(id, runtime)
  if (aside === undefined) return
  const text = `The token in ${AUTH_TOKEN_FILE} is not one of ${runtime}: it is kept as ${aside}, and only its own runtime gets it`
  await noteChange(id, text, options)
}

/** The author of notes that the platform writes itself. */
const PLATFORM_AUTHOR = 'platform'

async function noteChange(id: string, text: string, { addNote, log }: WorkspaceConfigsOptions): Promise<void> {
  log.warn({ workspaceId: id }, text)
  await addNote?.(id, { type: 'config_changed', text, by: PLATFORM_AUTHOR })
}

/** Prevents a workspace that an earlier version stored as tier 1 from running without its sandbox. */
const noSandbox = (id: string): MoleculeError =>
  new MoleculeError('bad_config', `${NO_SANDBOX_REASON}: PATCH /workspaces/${id} {"tier": 2}`)

/** The file was removed: writes it again from the store. */
async function restoreConfig(id: string, options: WorkspaceConfigsOptions): Promise<string | undefined> {
  const { store, homes } = options
  const workspace = await store.read(() => findWorkspace(id))
  if (workspace === undefined) return undefined
  const text = configTextOf(workspace)
  await homes.writeConfig(id, text)
  await noteChange(id, REMOVED_OUTSIDE, options)
  return text
}

/** The text of `config.yaml` for the stored settings of a workspace. */
export function configTextOf({ name, role, runtime, model, ...workspace }: Workspace): string {
  const { maxAttempts, maxConcurrentTasks, runtimeConfig } = workspace
  const settings = { max_attempts: maxAttempts, max_concurrent_tasks: maxConcurrentTasks, ...runtimeConfig }
  const change = { name, role, runtime, ...(model !== undefined && { model }), runtime_config: settings }
  return changeConfig(undefined, change, WORKSPACE_CONFIG_FILE)
}

/** In `config.yaml` the settings of the runtime are keys of `runtime_config`; they override an option of that name. */
export function runtimeConfigOf(
  input: Pick<NewWorkspace, 'maxAttempts' | 'maxConcurrentTasks' | 'runtimeConfig'>,
): Record<string, Json> {
  const { maxAttempts, maxConcurrentTasks, runtimeConfig } = input
  return {
    ...runtimeConfig,
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(maxConcurrentTasks !== undefined && { max_concurrent_tasks: maxConcurrentTasks }),
  }
}

/** As a turn gets them: the permission that an admin set wins over the file. */
const optionsToCheck = ({
  runtimeConfig,
  permission,
}: Pick<ValidatedConfig['config'], 'runtimeConfig'> & { readonly permission?: StoredPermission }) => ({
  ...backendOptions(runtimeConfig),
  ...(permission && { permission }),
})

async function validateConfig(
  text: string,
  { path, permission }: { readonly path: string; readonly permission: StoredPermission },
  { check }: Pick<WorkspaceConfigsOptions, 'check'>,
): Promise<ValidatedConfig> {
  const config = parseConfig(text, path)
  const configHash = hashConfig(text)
  if (isExternal(config)) return { config, configHash, checked: { ok: true } }
  try {
    return { config, configHash, checked: await check(config.runtime, optionsToCheck({ ...config, permission })) }
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    if (error.code !== 'bad_config') throw error
    const key = error.details['key']
    const at = typeof key === 'string' ? ['runtime_config', key] : ['runtime']
    throw configErrorAt(text, path, { at, message: error.message, cause: error })
  }
}

/** Turns `bad_config` into `invalid_request`: the caller sent the config, so it is not an error of the platform. */
export async function badConfigAsInvalidRequest<T>(work: () => Promise<T>, { sentFile = false } = {}): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MoleculeError) || error.code !== 'bad_config') throw error
    // A caller who sent no file must not read about a line of one.
    const message = error.message.replace(/^config\.yaml:\d+: /, '')
    const { problems, ...rest } = error.details
    const details = sentFile ? { ...rest, problems } : rest
    throw new MoleculeError('invalid_request', message, { cause: error, details })
  }
}
