/**
 * Adapters: backends and kinds of chat channels of other authors. At start, each folder of `<data-dir>/adapters` that exports
 * a backend, a channel or both is registered beside the built-in ones. Its code runs in this process with all rights, so a folder that other users may
 * write is refused. Invariant: a broken adapter is logged with its name and breaks no other adapter and no workspace.
 */
import { type Dirent, existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ChannelKind } from '../doors/chat/channel.ts'
import { type ErrorCode, MoleculeError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isJsonObject } from '../protocol/json.ts'
import {
  commandIn,
  installPackages,
  missingPackages,
  notInstalledText,
  type PackageInstaller,
} from './adapter-packages.ts'
import type { Backend, BackendDefinition, BackendEvent } from './backend.ts'
import { replaceRun } from './hooks.ts'

/** Further folders are ignored. */
const ADAPTERS_MAX = 100
/** For the code of an adapter, and for its setup. */
const ADAPTER_MS_MAX = 30_000
/** For npm, for all adapters together. */
const INSTALL_MS_MAX = 120_000
/** Every user of the machine may write. Group write is allowed: on many systems each user has a group of their own. */
const WRITABLE_BY_OTHERS = 0o002

export interface LoadAdaptersOptions {
  /** `<data-dir>/adapters`; it may be missing. */
  readonly dir: string
  /** Names of the built-in backends. */
  readonly taken: readonly string[]
  /** Absent where there are no chat channels (on a bridge): then those of adapters are not looked at. */
  readonly channels?: AdapterChannels
  readonly log: Log
}

export interface AdapterChannels {
  /** The built-in kinds. */
  readonly taken: readonly string[]
  /** The kind that an adapter exports as `channel`; throws an error with the reason. */
  readonly read: (exported: unknown) => ChannelKind
}

export interface LoadedAdapter {
  /** The name of its folder. */
  readonly adapter: string
  readonly definition: BackendDefinition
}

export interface LoadedAdapters {
  readonly loaded: readonly LoadedAdapter[]
  readonly channelKinds: readonly ChannelKind[]
  /** Why each of the other folders is skipped, by its name. */
  readonly broken: ReadonlyMap<string, string>
}

/**
 * Logs and skips an adapter that is broken or that has a name that is taken, whole. In order of folder names: the first one
 * wins.
 */
export async function loadAdapters({ dir, taken, channels, log }: LoadAdaptersOptions): Promise<LoadedAdapters> {
  const loaded: LoadedAdapter[] = []
  const channelKinds: ChannelKind[] = []
  const broken = new Map<string, string>()
  for (const adapter of await listAdapterFolders(dir)) {
    try {
      const { backend, channel } = await loadAdapter(join(dir, adapter), { channels, log })
      requireFree(backend?.name, [...taken, ...loaded.map(({ definition }) => definition.name)])
      requireFree(channel?.kind, [...(channels?.taken ?? []), ...channelKinds.map(({ kind }) => kind)])
      if (backend !== undefined) loaded.push({ adapter, definition: backend })
      if (channel !== undefined) channelKinds.push(channel)
      log.info({ adapter, backend: backend?.name, channel: channel?.kind }, 'an adapter is registered')
    } catch (error) {
      const reason = reasonOf(error)
      broken.set(adapter, reason)
      log.error({ adapter, err: error }, `adapter "${adapter}" is skipped: ${reason}`)
    }
  }
  return { loaded, channelKinds, broken }
}

function requireFree(name: string | undefined, taken: readonly string[]): void {
  if (name !== undefined && taken.includes(name)) throw new Error(`the name "${name}" is taken`)
}

/** Installs the packages that adapters need, before any of them is loaded; the names of those that have got some. */
export async function installAdapterPackages(
  dir: string,
  installer: Omit<PackageInstaller, 'signal'>,
): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(INSTALL_MS_MAX)
  const installed: string[] = []
  for (const adapter of await listAdapterFolders(dir)) {
    const folder = join(dir, adapter)
    // What is wrong with a folder is said when it is loaded.
    const missing = await missingOf(folder).catch(() => [])
    if (missing.length > 0 && (await installPackages({ adapter, folder, missing }, { ...installer, signal })))
      installed.push(adapter)
  }
  return installed
}

async function missingOf(folder: string): Promise<readonly string[]> {
  // Prevents that another user chooses what npm installs.
  for (const checked of [folder, join(folder, 'package.json')]) await checkOwner(checked)
  return missingPackages(folder, await readManifest(folder))
}

/** Why the files of an adapter cannot be loaded, without running any of them; undefined where nothing is seen. */
export async function findAdapterProblem(folder: string): Promise<string | undefined> {
  try {
    await checkFiles(folder)
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

/** The backend of an adapter, without its setup: for a look at it. Undefined for one with a channel alone. */
export async function importAdapter(folder: string): Promise<BackendDefinition | undefined> {
  return readBackend(await importEntry(await checkFiles(folder), folder))
}

/** Folders and links to folders, sorted by name. */
export async function listAdapterFolders(dir: string): Promise<string[]> {
  if (!existsSync(dir)) return []
  const entries: Dirent[] = await readdir(dir, { withFileTypes: true })
  const folders = entries.filter(
    (entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'),
  )
  return folders
    .map(({ name }) => name)
    .sort()
    .slice(0, ADAPTERS_MAX)
}

type AdapterModule = Readonly<Record<string, unknown>>

async function loadAdapter(folder: string, { channels, log }: Pick<LoadAdaptersOptions, 'channels' | 'log'>) {
  const module = await importEntry(await checkFiles(folder), folder)
  const backend = readBackend(module)
  const channel = module['channel'] === undefined ? undefined : channels?.read(module['channel'])
  const { setup } = module
  if (typeof setup === 'function') await inTime('its setup', (setup as (options: { log: Log }) => unknown)({ log }))
  return { backend, channel }
}

/** An adapter with a channel needs no backend. */
function readBackend(module: AdapterModule): BackendDefinition | undefined {
  const exported = module['backend'] ?? module['default']
  if (exported === undefined && module['channel'] !== undefined) return undefined
  return withOurBackends(checkDefinition(exported))
}

const withOurBackends = (definition: BackendDefinition): BackendDefinition => ({
  ...definition,
  create: (options, context) => withOurErrors(definition.create(options, context), context.log),
})

/** The path of the entry file. Throws for files that must not be run and for packages that are missing. */
async function checkFiles(folder: string): Promise<string> {
  const manifest = await readManifest(folder)
  const entry = join(folder, entryOf(manifest))
  for (const checked of [folder, entry]) await checkOwner(checked)
  const missing = missingPackages(folder, manifest)
  if (missing.length > 0) throw new Error(notInstalledText(folder, missing))
  return entry
}

async function importEntry(entry: string, folder: string): Promise<AdapterModule> {
  try {
    return (await inTime('its code', import(pathToFileURL(entry).href))) as AdapterModule
  } catch (cause) {
    // Node names no file in the message: `Unexpected token '='`.
    if (cause instanceof SyntaxError) throw new Error(`${entry} cannot be loaded: ${cause.message}`, { cause })
    const unlisted = /^Cannot find package '([^'\n]{1,300})'/.exec(reasonOf(cause))?.[1]
    if (unlisted === undefined) throw cause
    const message = `it imports the package ${unlisted}, which is not in its package.json; run: ${commandIn(folder, `npm install ${unlisted}`)}`
    throw new Error(message, { cause })
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

async function readManifest(folder: string): Promise<Readonly<Record<string, unknown>>> {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) throw new Error('it has no package.json')
  const manifest: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (!isJsonObject(manifest)) throw new Error('its package.json is not a JSON object')
  return manifest
}

/** As Node finds it: `exports`, `main`, or `index.js`. */
function entryOf({ exports, main }: Readonly<Record<string, unknown>>): string {
  const own = isJsonObject(exports) ? exports['.'] : exports
  const entry = isJsonObject(own) ? (own['import'] ?? own['default']) : own
  return [entry, main].find((one) => typeof one === 'string') ?? 'index.js'
}

async function checkOwner(path: string): Promise<void> {
  const { mode, uid } = await stat(path)
  const us = process.getuid?.()
  if (us === undefined) return
  if (uid !== us && uid !== 0) throw new Error(`${path} belongs to another user`)
  if ((mode & WRITABLE_BY_OTHERS) !== 0) throw new Error(`${path} can be written by every user (chmod o-w)`)
}

function checkDefinition(exported: unknown): BackendDefinition {
  if (!isObject(exported))
    throw new Error('it exports no backend: neither "backend" nor a default export, and no "channel"')
  const { name, summary, options, create } = exported
  if (typeof name !== 'string' || !/^[a-z][a-z0-9-]{0,63}$/.test(name)) {
    throw new Error('the name of its backend must consist of lowercase letters, digits and -')
  }
  if (typeof create !== 'function') throw new Error(`backend "${name}" has no factory: create must be a function`)
  if (!isObject(options)) throw new Error(`backend "${name}" has no options: it must list the options that it reads`)
  if (typeof summary !== 'string') throw new Error(`backend "${name}" has no summary`)
  return exported as unknown as BackendDefinition
}

/** Without the limit, code or a setup that hangs would stop the platform's start. */
async function inTime<T>(what: string, work: T | Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const message = `${what} did not finish within ${ADAPTER_MS_MAX / 1000} s`
  const timer = setTimeout(() => late.reject(new Error(message)), ADAPTER_MS_MAX)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** An adapter has no MoleculeError, or another copy of the class, so each of its errors is converted. */
function withOurErrors(backend: Backend, log: Log): Backend {
  const ours = replaceRun(backend, (turn, signal) => ourErrors(backend.run(turn, signal)))
  return {
    ...ours,
    ...(backend.limits !== undefined && { limits: () => readLimits(backend) }),
    close: () => closeLogged(backend, log),
  }
}

/** The caller of `close` has no use for its error: it would end the platform, or all of `molecule doctor`. */
async function closeLogged(backend: Backend, log: Log): Promise<void> {
  try {
    await backend.close()
  } catch (err) {
    log.warn({ backend: backend.name, err }, `the adapter of "${backend.name}" failed to close`)
  }
}

/** After a turn no error of an adapter may hide its answer. */
function readLimits(backend: Backend): readonly string[] {
  try {
    const limits: unknown = backend.limits?.()
    return Array.isArray(limits) ? limits.map(String) : []
  } catch {
    return []
  }
}

async function* ourErrors(events: AsyncIterable<BackendEvent>): AsyncGenerator<BackendEvent> {
  for await (const event of events) yield event.type === 'failed' ? { ...event, error: toOurError(event.error) } : event
}

function toOurError(error: unknown): MoleculeError {
  if (error instanceof MoleculeError) return error
  const { code, message, retryable, details } = (isObject(error) ? error : {}) as Partial<MoleculeError>
  return new MoleculeError(
    TURN_ERROR_CODES.find((known) => known === code) ?? 'agent_failed',
    message ?? String(error),
    {
      retryable: retryable === true,
      cause: error,
      // An adapter that says `agent_failed` writes for the caller. An error without a code may be anything.
      details: { ...(isJsonObject(details) && details), ...(code === 'agent_failed' && { forCaller: true }) },
    },
  )
}

/** The codes that an adapter may give the end of a turn. Any other code becomes `agent_failed`. */
const TURN_ERROR_CODES: readonly ErrorCode[] = [
  ...(['bad_config', 'backend_missing', 'spawn_failed', 'timeout', 'exit', 'empty_response', 'rate_limited'] as const),
  'unreadable_output',
  ...(['auth_failed', 'provider_failed', 'context_full', 'session_lost', 'agent_failed', 'max_turns'] as const),
  ...(['quota_exhausted', 'overloaded', 'provider_unreachable', 'unknown_model', 'bad_request'] as const),
  ...(['too_large', 'canceled'] as const),
]

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
