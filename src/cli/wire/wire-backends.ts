/** Joins processes, adapters and backends for `wire.ts`. */
import { join } from 'node:path'
import type { PackageInstaller } from '../../backends/adapter-packages.ts'
import { installAdapterPackages, loadAdapters } from '../../backends/adapters.ts'
import type { BackendContext } from '../../backends/backend.ts'
import { type BackendRegistry, builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import { unknownOptionKeys } from '../../backends/options.ts'
import { createOutbound } from '../../client/outbound.ts'
import { systemClock } from '../../clock.ts'
import type { PlatformConfig } from '../../config/config.ts'
import { readForeignKind } from '../../doors/chat/foreign-kind.ts'
import type { LocalInbox } from '../../inbox/local/local-inbox.ts'
import { type MaskingLog, secretValues } from '../../log.ts'
import { openCgroups } from '../../process/cgroups.ts'
import { platformEnvironment } from '../../process/child-environment.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { reapOrphans } from '../../process/orphan-records.ts'
import { platformKeysSchema } from '../../workspaces/config/config-file.ts'
import type { BackendCheck, Workspaces } from '../../workspaces/workspace.ts'
import { CHANNEL_KINDS, createChannelKinds } from '../channel-kinds.ts'
import {
  type AdapterState,
  adaptersDirOf,
  compareAdapters,
  recordAdapters,
  recordBroken,
  rehashInstalled,
} from '../data-folder/adapter-record.ts'
import { createFoundAgents } from '../doctor/found-agents.ts'
import { createLoginCheck } from '../login-check.ts'
import { didYouMean } from '../terminal/near-misses.ts'
import type { Environment } from '../terminal/terminal.ts'
import { validateAndClose } from '../validate-backend.ts'

export interface WireBackendsOptions {
  readonly config: PlatformConfig
  readonly log: MaskingLog
  readonly environment: Environment
  /** The id of the data folder. */
  readonly host: string
}

export type WiredBackends = Awaited<ReturnType<typeof wireBackends>>

/** What a backend does and needs, asked by the name of the runtime. */
export interface BackendTraits {
  /** Its turns start no process on this machine. */
  startsNothing(runtime: string): boolean
  /** Its agent keeps sessions of its own. */
  keepsSessions(runtime: string): boolean
  /** It has no memory of its own and gets the history. */
  usesHistory(runtime: string): boolean
  /** It has a use for the system prompt and the memories. */
  readsPrompt(runtime: string): boolean
  /** Its agent can run commands. */
  runsCommands(runtime: string): boolean
  /** It is a program of the owner that gets the brief beside its message. */
  readsBrief(runtime: string): boolean
  /** Its turns cost money. */
  isMetered(runtime: string): boolean
}

/** Processes and backends, after the processes of an earlier platform have been killed. */
export async function wireBackends({ config, log, environment, host }: WireBackendsOptions) {
  for (const secret of secretValues(environment)) log.hide(secret)
  const recordsDir = join(config.dataDir, 'processes')
  const orphansReaped = await reapOrphans({ recordsDir, owner: host, log })
  const { cgroups } = await openCgroups({ owner: host, recordsDir, log, isOff: !config.usesCgroups })
  const processes = createProcesses({ owner: host, recordsDir, clock: systemClock, log, cgroups })
  const npm = { processes, environment: platformEnvironment(environment), log }
  const { adapters, channelKinds, broken, adapterChanges } = await wireAdapters(config.dataDir, npm)
  const registry = createBackendRegistry([...builtinBackends, ...adapters], broken)
  const outbound = createOutbound({ allow: config.allowOutbound })
  const context: BackendContext = {
    processes,
    environment: npm.environment,
    clock: systemClock,
    log,
    outbound,
  }
  const build = ({ runtime, options }: BackendChoice) => registry.build(runtime, options, context)
  const check = (runtime: string, options: BackendChoice['options']) =>
    checkBackend(registry, { runtime, options }, context)
  return {
    processes,
    /** What the children of the platform inherit. */
    environment: npm.environment,
    registry,
    channelKinds: createChannelKinds(channelKinds, broken),
    orphansReaped,
    build,
    check,
    checkLogin: createLoginCheck(environment),
    traits: traitsOf(registry),
    adapterChanges,
    runtimes: ['external', ...registry.names()].sort(),
    agents: createFoundAgents({ env: environment, context }),
  }
}

function traitsOf(registry: BackendRegistry): BackendTraits {
  const find = (runtime: string) => (registry.names().includes(runtime) ? registry.get(runtime) : undefined)
  return {
    startsNothing: (runtime) => find(runtime)?.startsNothing === true,
    keepsSessions: (runtime) => find(runtime)?.keepsSessions === true,
    // An adapter that only a bridge has is no backend of this platform: it gets what it may need.
    usesHistory: (runtime) => find(runtime) === undefined || find(runtime)?.usesHistory === true,
    readsPrompt: (runtime) => find(runtime)?.ignoresPrompt !== true,
    runsCommands: (runtime) => find(runtime)?.runsCommands === true,
    readsBrief: (runtime) => find(runtime)?.readsBrief === true,
    // One of a bridge alone is not metered: it may be free.
    isMetered: (runtime) => find(runtime) !== undefined && find(runtime)?.isFree !== true,
  }
}

interface AdapterChange {
  readonly text: string
  /** Undefined for an adapter that could not be loaded. */
  readonly backend: string | undefined
}

/** Loads the adapters, and reports those that appeared, changed or vanished since the last start. */
async function wireAdapters(dataDir: string, npm: Omit<PackageInstaller, 'signal'>) {
  const { log } = npm
  const found = await compareAdapters(dataDir)
  // Reported before any of them is loaded: its code could hide the change.
  const changes = found.filter(({ change }) => change !== 'none')
  for (const { adapter, hash, change } of changes) log.warn({ adapter, hash }, changeText({ adapter, hash, change }))
  const now = new Date().toISOString()
  recordAdapters(dataDir, found, now)
  const dir = adaptersDirOf(dataDir)
  const states = await rehashInstalled(dataDir, found, await installAdapterPackages(dir, npm))
  const taken = builtinBackends.map(({ name }) => name)
  const channels = { taken: Object.keys(CHANNEL_KINDS), read: readForeignKind }
  const { loaded, channelKinds, broken } = await loadAdapters({ dir, taken, channels, log })
  recordBroken(dataDir, states, { broken, now })
  const backendOf = (adapter: string) => loaded.find((one) => one.adapter === adapter)?.definition.name
  return {
    adapters: loaded.map(({ definition }) => definition),
    channelKinds,
    broken,
    adapterChanges: changes.map(
      (state): AdapterChange => ({ text: changeText(state), backend: backendOf(state.adapter) }),
    ),
  }
}

const CHANGE_TEXTS = { new: 'is new', changed: 'has changed', removed: 'is gone', none: 'is the same' } as const

const changeText = ({ adapter, hash, change }: Pick<AdapterState, 'adapter' | 'hash' | 'change'>): string =>
  `the adapter "${adapter}" ${CHANGE_TEXTS[change]} since the last start (${hash})`

/** Adds a note to the activity of every workspace that the adapter runs. */
export async function noteAdapterChanges(
  changes: readonly AdapterChange[],
  workspaces: Pick<Workspaces, 'all'>,
  { addNote }: Pick<LocalInbox['activity'], 'addNote'>,
): Promise<void> {
  if (changes.length === 0) return
  const all = await workspaces.all()
  for (const { text, backend } of changes) {
    for (const { id } of all.filter(({ runtime }) => runtime === backend)) {
      await addNote(id, { type: 'adapter_changed', text, by: 'platform' })
    }
  }
}

interface BackendChoice {
  readonly runtime: string
  readonly options: Readonly<Record<string, string>>
}

/** Builds a backend only to validate it; throws `bad_config` for options that the backend refuses. */
async function checkBackend(
  registry: BackendRegistry,
  { runtime, options }: BackendChoice,
  context: BackendContext,
): Promise<BackendCheck> {
  const validation = await validateAndClose(registry.build(runtime, options, context))
  const warnings = ignoredOptionWarnings(registry, { runtime, options })
  const { limits } = validation
  const told = { ...(warnings.length > 0 && { warnings }), ...(limits.length > 0 && { limits }) }
  return validation.ok
    ? { ok: true, ...told }
    : { ok: false, reason: `${validation.problem.replace(/\.$/, '')}; ${validation.remedy}`, ...told }
}

/** One sentence for each key of `runtime_config` that neither the platform nor the backend reads. */
function ignoredOptionWarnings(registry: BackendRegistry, { runtime, options }: BackendChoice): string[] {
  const definition = registry.get(runtime)
  /** An option of another backend is no typing error, so nothing else is meant by it. */
  const isElsewhere = (key: string) => registry.names().some((name) => Object.hasOwn(registry.get(name).options, key))
  const known = [...Object.keys(definition.options), ...Object.keys(platformKeysSchema.shape)]
  return unknownOptionKeys(definition, options)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const suggestion =
        (isElsewhere(key) ? '' : didYouMean(key, known)) ||
        `; its options are ${Object.keys(definition.options).sort().join(', ')}`
      return `the backend ${definition.name} has no option ${JSON.stringify(key)} and ignores it${suggestion}`
    })
}
